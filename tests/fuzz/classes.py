"""The classes of cases of the fuzzer, and what each case is made of."""

import numpy as np
from fuzz import foreign_files, graph_files, no_files, options, policies, saved_parts
from fuzz.case import Case

CLASSES = {
    "graph_files": graph_files.make_case,
    "saved_parts": saved_parts.make_case,
    "foreign_files": foreign_files.make_case,
    "node_maps": policies.make_node_map,
    "policies": policies.make_case,
    "options": options.make_case,
    "no_files": no_files.make_case,
}


def case_of(name: str, seed: int, number: int) -> Case:
    """A case: the same for the same words."""
    return CLASSES[name](np.random.default_rng([seed, number, sum(name.encode())]))

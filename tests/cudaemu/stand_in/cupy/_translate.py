"""CUDA C++ to what g++ compiles: shared variables, and a table of the kernels. Line numbers stay as they are."""

import re
from collections.abc import Iterator, Sequence

COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
SHARED = re.compile(r"(?P<extern>extern\s+)?(?:static\s+)?__shared__\s+(?P<rest>[^;{}]*);")
DECLARATOR = re.compile(r"^(?P<type>.*?)(?P<name>\w+)\s*(?P<bounds>(?:\[[^\]]*\]\s*)*)$", re.DOTALL)
ALIGNMENT = re.compile(r"(?:__align__|alignas)\s*\([^)]*\)")
LAUNCH_BOUNDS = re.compile(r"__launch_bounds__\s*\(([^(),]*(?:\([^()]*\)[^(),]*)*)(?:,[^()]*)?\)")
FOR_GPUS = re.compile(r"^#ifndef CUDAEMU$.*?^#endif$", re.DOTALL | re.MULTILINE)
KERNEL = re.compile(r"__global__\s[^;{}()]*?\b(?P<name>\w+)\s*\(")


class SourceError(Exception):
    """The source has something that the stand-in does not imitate; ``str()`` names the line."""


def translate(source: str, name_expressions: Sequence[str] = ()) -> str:
    """The source with its shared variables rewritten, and a table of its kernels at the end."""
    code = blank(source)
    found = re.search(r"\basm\b", FOR_GPUS.sub(lambda match: " " * len(match.group()), code))
    if found:
        raise SourceError(f"line {line_of(code, found.start())}: inline PTX cannot run on a CPU; use an intrinsic,"
                          " cuda::atomic_ref, or #ifndef CUDAEMU")  # fmt: skip
    return rewrite_shared(source, code) + "\n" + kernel_table(code, name_expressions)


def blank(source: str) -> str:
    """The source with comments and strings turned into spaces, except for the C of ``extern "C"``."""

    def spaces(match: re.Match[str]) -> str:
        text = match.group()
        return " C " if text == '"C"' else re.sub(r"[^\n]", " ", text)

    return COMMENT_OR_STRING.sub(spaces, source)


def line_of(code: str, position: int) -> int:
    """Line of a position, from 1."""
    return code.count("\n", 0, position) + 1


def rewrite_shared(source: str, code: str) -> str:
    """Variables declared ``__shared__`` become references into the shared memory of the block that runs."""
    pieces, end = [], 0
    for match in SHARED.finditer(code):
        text = source[match.start("rest") : match.end("rest")]
        declare = dynamic_variable if match["extern"] else static_variables
        lines = "\n" * source.count("\n", match.start(), match.end())
        pieces += [source[end : match.start()], declare(text, inside_function(code, match.start())), lines]
        end = match.end()
    return "".join(pieces) + source[end:]


def inside_function(code: str, position: int) -> bool:
    """Whether a position is within braces other than those of namespaces and ``extern "C"``."""
    opened: list[bool] = []
    for match in re.finditer(r"[{}]", code[:position]):
        if match.group() == "{":
            before = re.split(r"[;{}]", code[: match.start()])[-1]
            opened.append(not re.search(r"\bnamespace\b|\bextern\s+C\s*$", before))
        elif opened:
            opened.pop()
    return any(opened)


def dynamic_variable(text: str, local: bool) -> str:
    """``extern __shared__ T name[];``"""
    type_, name, _ = split_declarator(ALIGNMENT.sub("", text))
    if local:
        return f"{type_} *const {name} = static_cast<{type_} *>(cudaemu::dynamic_shared());"
    return f"static cudaemu::DynamicShared<{type_}> {name};"


def static_variables(text: str, local: bool) -> str:
    """``__shared__ T name[size], other;``"""
    if not local:
        raise SourceError(f"a __shared__ variable outside of a function: {text.strip()}")
    first, *others = split_commas(ALIGNMENT.sub("", text))
    type_, name, bounds = split_declarator(first)
    declared = [(name, bounds)] + [split_declarator(" " + other)[1:] for other in others]
    return " ".join(
        f"static cudaemu::Slot slot_of_{name}; typedef {type_} type_of_{name}{bounds};"
        f" type_of_{name} &{name} = cudaemu::in_shared<type_of_{name}>(slot_of_{name});"
        for name, bounds in declared
    )


def split_declarator(text: str) -> tuple[str, str, str]:
    """Type, name and bounds of ``T name[bounds]``."""
    match = DECLARATOR.match(" ".join(text.split()))
    if match is None:
        raise SourceError(f"a __shared__ declaration that the stand-in cannot read: {text.strip()}")
    return match["type"].strip(), match["name"], match["bounds"]


def split_commas(text: str) -> Iterator[str]:
    """Parts between the commas that are in no bracket."""
    depth, part = 0, ""
    for char in text:
        depth += (char in "<([{") - (char in ">)]}")
        if char == "," and depth == 0:
            yield part
            part = ""
        else:
            part += char
    yield part


def kernel_table(code: str, name_expressions: Sequence[str]) -> str:
    """C++ that defines ``cudaemu_kernels``: one entry for each kernel that can be asked for by name."""
    entries = [f'cudaemu::entry<&{name}>("{name}", {bound})' for name, bound in c_kernels(code)]
    entries += [f'cudaemu::entry<&{name}>("{name}")' for name in name_expressions]
    listed = ", ".join([*entries, "{}"])
    return f'#line 1 "table of kernels"\nextern "C" {{ cudaemu::Entry cudaemu_kernels[] = {{{listed}}}; }}\n'


def c_kernels(code: str) -> Iterator[tuple[str, str]]:
    """Name and bound of threads (0: none) of each ``extern "C"`` kernel, declared twice or not."""
    seen = set()
    bounds = {match.start(): match[1].strip() for match in LAUNCH_BOUNDS.finditer(code)}
    plain = LAUNCH_BOUNDS.sub(lambda match: " " * len(match.group()), code)
    for match in KERNEL.finditer(plain):
        name = match["name"]
        if name not in seen and is_extern_c(plain, match.start()):
            seen.add(name)
            yield name, next((bounds[at] for at in bounds if match.start() < at < match.start("name")), "0")


def is_extern_c(code: str, position: int) -> bool:
    """Whether what is declared at a position has C linkage."""
    statement = re.split(r"[;{}]|\n\s*#[^\n]*\n", code[:position])[-1]
    if re.search(r"\bextern\s+C\b", statement):
        return True
    opened: list[bool] = []
    for match in re.finditer(r"(\bextern\s+C\s*)?\{|\}", code[:position]):
        if match.group() != "}":
            opened.append(match[1] is not None)
        elif opened:
            opened.pop()
    return any(opened)

"""An app as a function: its options are keyword arguments, its help is made of them."""

import argparse
import inspect
from collections.abc import Callable
from typing import Any

from cusp.apps.harness import App, timed_run
from cusp.apps.run.checkpoint import open_checkpoint
from cusp.apps.run.cli import EXECUTIONS, with_gids
from cusp.apps.run.former import open_former
from cusp.apps.run.keywords import Keywords, annotation_of
from cusp.apps.run.partitioned_graph import PartitionedGraph
from cusp.apps.run.result import Result
from cusp.errors import OptionError, check_same, together
from cusp.output.whole_file import Name, check_targets
from cusp.program.cli import node_list, one_node, weighted_node
from cusp.program.traced import traced
from gluon.sync import Sync


def function_of(app: App, text: str | None = None) -> Callable[..., Result]:
    """An app as a function of a partitioned graph, a source if it needs one, and its options.

    Parameters
    ----------
    app : App
    text : str, optional
        What ``help`` begins with; the summary if left out.
    """
    parser = Keywords(app.name, app.add_options, app.seeded)
    nodes = {action.dest for action in parser.actions if action.type in (one_node, node_list)}
    weighted = {action.dest for action in parser.actions if action.type is weighted_node}

    def read(part: PartitionedGraph, options: dict[str, Any], verify: bool, execution: str) -> argparse.Namespace:
        named = {name: part.gids(options[name]) for name in nodes & options.keys()}
        named |= {name: part.weights_of(options[name], f"--{name}") for name in weighted & options.keys()}
        chosen = with_gids(parser, parser.read(options | named), None, part.num_nodes)
        if execution not in EXECUTIONS:
            raise OptionError(f"execution={execution!r}: choose one of {', '.join(EXECUTIONS)}")
        chosen.verify, chosen.execution = verify, execution
        app.check_options(chosen)
        if app.reads_weights(chosen) and part.unused:
            raise OptionError(
                f"{app.name}: no column is known to be the weight of edges; say which with partition_graph(graph, "
                f"columns={part.unused[0]!r}), or weights=False for lengths of 1"
            )
        return chosen

    def run(
        part: PartitionedGraph, source: Any, /, *, gather: bool = True, verify: bool = False, execution: str = "auto",
        trace: Name | None = None, **options: Any,
    ) -> Result:  # fmt: skip
        if not isinstance(part, PartitionedGraph):
            raise OptionError(
                f"{app.name} takes what partition_graph returned, not {type(part).__name__}; call "
                f"{app.name}(partition_graph(graph), ...)"
            )
        former = options.get("start")
        former = former if isinstance(former, Result) else None
        options |= {"start": "start"} if former else {}
        targets = {"trace": trace, "checkpoint": options.get("checkpoint")}
        if any(path is not None for path in targets.values()):
            check_targets(part.comm, targets)
        with traced(part.comm, trace, say=False) as comm:
            with together(comm):
                chosen = read(part, options, verify, execution)
                gid = part.gid(source) if app.needs_source else None
            given = ", ".join(f"{name}={value}" for name, value in sorted(vars(chosen).items()))
            size = f"{part.num_nodes:,} nodes, {part.num_edges:,} edges"
            check_same(comm, "calls", f"{app.name}(a graph of {size}, source={gid}, {given})")
            checkpoint = open_checkpoint(app, part.part, comm, gid, chosen)
            unlike = {"checkpoint": None, "every": None, "start": getattr(chosen, "start", None) and True}
            state = part.prepared(app, argparse.Namespace(**vars(chosen) | unlike))
            start = open_former(comm, chosen, part.names, former)
            chosen.checkpoint, chosen.every, chosen.start = checkpoint, None, start
            answer, seconds = timed_run(app, part.part, Sync(part.plan, comm, execution=execution), gid, state, chosen)
            answer = answer.on_host()
            if verify:
                app.check(part.part, Sync(part.plan, comm), gid, answer, state, chosen)
            if checkpoint:
                checkpoint.remove()
            return Result(answer, part.part, part.names, part.comm, seconds, gather, app.nodes)

    def with_source(part: PartitionedGraph, source: Any, **keywords: Any) -> Result:
        return run(part, source, **keywords)

    def without(part: PartitionedGraph, **keywords: Any) -> Result:
        return run(part, None, **keywords)

    function: Any = with_source if app.needs_source else without
    function.__name__ = function.__qualname__ = app.name
    function.__signature__ = _signature(function, run, parser)
    function.__doc__ = _help(app, parser, text or f"{app.summary[0].upper()}{app.summary[1:]}.")
    return function  # type: ignore[no-any-return]


def _signature(function: Callable[..., Result], run: Callable[..., Result], parser: Keywords) -> inspect.Signature:
    """That of the function, with the keywords of ``run`` and the options of the app in the place of ``**keywords``."""
    plain = inspect.signature(function)
    parameters = [each for each in plain.parameters.values() if each.kind != each.VAR_KEYWORD]
    parameters += [each for each in inspect.signature(run).parameters.values() if each.kind == each.KEYWORD_ONLY]
    for action in parser.actions:
        default = inspect.Parameter.empty if action.required else action.default
        keyword = inspect.Parameter(action.dest, inspect.Parameter.KEYWORD_ONLY, default=default)
        parameters.append(keyword.replace(annotation=annotation_of(action)))
    return plain.replace(parameters=parameters)


def _help(app: App, parser: Keywords, text: str) -> str:
    lines = [
        text.strip(),
        "",
        "Collective. Returns a Result.",
        "",
        *(["source : the node to start from, by global id or name"] if app.needs_source else []),
        "gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own",
        "verify : check the answer by invariants, and raise VerificationError if it is wrong",
        "execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``",
        "trace : a file for the timelines of this call, as ``--trace`` writes it",
        *(f"{action.dest} : {(action.help or '').replace('%%', '%')}" for action in parser.actions),
    ]
    return "\n".join(lines)

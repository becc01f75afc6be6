"""Scripts that complete the command line of ``cusp`` in a shell: ``cusp completion bash``, ``cusp completion zsh``.

The script knows all commands, options and choices, so that nothing is started when the user presses Tab.
"""

import argparse
from collections.abc import Iterator, Mapping

from cusp.policies.policy import POLICIES

BASH = """\
# Completes cusp in bash. For every new shell: cusp completion bash > ~/.local/share/bash-completion/completions/cusp
_cusp() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands} completion --help --version"
    else
        case "${{COMP_WORDS[1]}} $before" in
            "completion completion") words="bash zsh" ;;
{values}
            *) case "${{COMP_WORDS[1]}} $word" in
{options}
            esac ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _cusp cusp
"""
ZSH = """\
# Completes cusp in zsh. For every new shell: cusp completion zsh > ~/.cusp.zsh, and in ~/.zshrc: source ~/.cusp.zsh
autoload -Uz compinit bashcompinit && compinit && bashcompinit
"""


def script(shell: str, parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    """The script for a shell, ``bash`` or ``zsh``, which takes that of bash.

    Parameters
    ----------
    parsers : dict of ArgumentParser
        The command line of every command.
    """
    values, options = [], []
    for command, parser in parsers.items():
        flags: dict[str, None] = {"--help": None}
        for action in _actions(parser):
            flags |= dict.fromkeys(flag for flag in action.option_strings if flag.startswith("--"))
            choices = POLICIES if action.dest in ("policy", "policies") else action.choices
            if choices:
                places = action.option_strings or [command]
                cases = "|".join(f'"{command} {place}"' for place in places)
                values.append(f'            {cases}) words="{" ".join(map(str, choices))}" ;;')
        options.append(f'                "{command} -"*) words="{" ".join(flags)}" ;;')
    text = BASH.format(commands=" ".join(parsers), values="\n".join(dict.fromkeys(values)), options="\n".join(options))
    return (ZSH + text.partition("\n")[2] if shell == "zsh" else text).rstrip()


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a command line, and those of its subcommands."""
    for action in parser._actions:
        if action.help is not argparse.SUPPRESS:
            yield action
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _actions(sub)

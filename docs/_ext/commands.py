"""The reference of the command line, written from the parser when the site is built."""

import argparse
from pathlib import Path


def setup(app):
    """Write the page before Sphinx looks for pages."""
    app.connect(
        "builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "commands.rst")
    )
    return {"parallel_read_safe": True}


def write(page):
    """Write the options of every command, and the parameters of every method."""
    from heatsketch.cli.arguments import parser_of

    parser = parser_of()
    (verbs,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    text = ["Command line", "=" * 12, "", "::", "", *indented(parser.format_usage()), ""]
    text += [f"- `heatsketch {a.dest}`_: {a.help}" for a in verbs._choices_actions]
    text += ["", escaped(parser.epilog or ""), "", *options(parser)]
    for verb, command in verbs.choices.items():
        text += [
            "",
            f"heatsketch {verb}",
            "-" * (11 + len(verb)),
            "",
            command.description or "",
            "",
        ]
        text += ["::", "", *indented(command.format_usage()), "", *options(command)]
    page.parent.mkdir(exist_ok=True)
    page.write_text("\n".join(text) + "\n", encoding="utf-8")


def options(parser):
    """Return a definition list of the options of a parser, group by group."""
    text = []
    for group in parser._action_groups:
        actions = [a for a in group._group_actions if a.help and a.help != argparse.SUPPRESS]
        actions = [a for a in actions if not isinstance(a, argparse._SubParsersAction)]
        if actions:
            text += [f".. rubric:: {group.title}", ""]
        if actions and group.description:
            text += [" ".join(group.description.split()), ""]
        for action in actions:
            formatter = parser._get_formatter()
            head = formatter._format_action_invocation(action)
            help_text = formatter._expand_help(action)
            text += [
                f"``{head}``",
                *(f"   | {escaped(line)}" for line in help_text.splitlines()),
                "",
            ]
    return text


def escaped(text):
    """Return plain text in which nothing is markup."""
    for mark in ("\\", "*", "`", "|"):
        text = text.replace(mark, "\\" + mark)
    return text.replace("_ ", "\\_ ").strip()


def indented(text):
    """Return the lines of a text, moved to the right."""
    return [f"   {line}" for line in text.rstrip().splitlines()]

"""Errors a person can do something about. All end the command with exit code 2."""

from typing import IO, Any

import click


class FramestormError(click.ClickException):
    """Set-up or usage error; the message says what is wrong and what to do."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"framestorm: error: {self.format_message()}", file=file, err=file is None)

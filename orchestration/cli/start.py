"""The entry of the `perennial` command: interrupts are handled before the slow imports begin."""

from orchestration.cli.interrupt import handle_interrupts


def main() -> None:
    handle_interrupts()
    from orchestration.cli.main import main as command

    command()

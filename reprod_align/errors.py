"""What this library raises: one root, one line each."""


def one_line(text: str) -> str:
    """Return `text` with control characters and line breaks written as escapes.

    Names in a record come from a file: printed raw, one could forge a line of a log.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class ReprodError(Exception):
    """Root of every error raised here; the message is one line: what is wrong, where, what to do.

    A line break in `message` is written as an escape, so that the promise always holds.
    """

    def __init__(self, message: str) -> None:
        """Keep `message`, as one line."""
        super().__init__(one_line(message))


class RecordError(ReprodError):
    """A record cannot be read, or a value cannot be recorded."""


class WeightsError(ReprodError):
    """Weights cannot be read, or do not fit a model."""


class MissingInputError(ReprodError):
    """A file that an earlier script should have written is not there."""

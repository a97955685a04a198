"""What goes wrong because of the input, said before any work starts."""

__all__ = ["ConfigError", "DataError", "DataTypeError", "suggest"]


class DataError(ValueError):
    """The data cannot be used: the message says what was got, what is wanted, what to do."""


class DataTypeError(DataError, TypeError):
    """The data hold objects that are no numbers; scikit-learn wants a TypeError for those."""


class ConfigError(ValueError):
    """A setting cannot be used: the message says what was got, what is wanted, what to do."""


def suggest(name: str, known: list[str]) -> str:
    """The end of an error message: the nearest known name, then all of them.

    >>> suggest("expcrl", ["expclr", "simclr"])
    "did you mean 'expclr'? Known: expclr, simclr"
    """
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return f"{guess}Known: {', '.join(sorted(known))}"

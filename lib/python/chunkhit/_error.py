"""The one exception of the package."""
from __future__ import annotations


class Error(RuntimeError):
    """Says what, where, found and expected.

    `code` names what went wrong: "usage" (an option that makes no sense), "bad_data" (input that cannot be used, or a
    damaged pack), "too_many_rejects", "cannot_write", or "try_again" (something that may pass).
    """

    code: str

    def __init__(self, message: str, code: str = "usage") -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self):
        return (type(self), (str(self), self.code))

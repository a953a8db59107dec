"""The one exception that people are meant to see."""


class AuditError(Exception):
    """Something a user can mend: one sentence that says what is wrong, where, and what to do.

    Every command and stage prints this sentence without a traceback and exits with status 1;
    any other exception is a bug and keeps its traceback.
    """

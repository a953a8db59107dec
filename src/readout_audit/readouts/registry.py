"""Every readout by name. Adding one is one module and one line here."""

from functools import cache
from importlib import import_module

from readout_audit.errors import AuditError
from readout_audit.readouts.base import Readout

READOUTS = {
    "legacy_2tok": "readout_audit.readouts.legacy:LEGACY_2TOK",
    "legacy_8tok": "readout_audit.readouts.legacy:LEGACY_8TOK",
    "dynamic_single": "readout_audit.readouts.dynamic:DYNAMIC_SINGLE",
    "vocab_scan": "readout_audit.readouts.dynamic:VOCAB_SCAN",
    "in_context": "readout_audit.readouts.dynamic:IN_CONTEXT",
    "set_logsumexp": "readout_audit.readouts.dynamic:SET_LOGSUMEXP",
    "threshold": "readout_audit.readouts.threshold:THRESHOLD",
    "first_token": "readout_audit.readouts.first_token:FIRST_TOKEN",
    "string_parse": "readout_audit.readouts.strings:STRING_PARSE",
    "string_parse_full": "readout_audit.readouts.strings:STRING_PARSE_FULL",
    "string_parse_full_nowindow": "readout_audit.readouts.strings:STRING_PARSE_FULL_NOWINDOW",
    "string_parse_substring": "readout_audit.readouts.strings:STRING_PARSE_SUBSTRING",
    "pope_official": "readout_audit.readouts.harness.pope:POPE_OFFICIAL",
    "lmms_eval": "readout_audit.readouts.harness.lmms_eval:LMMS_EVAL",
    "vlmevalkit": "readout_audit.readouts.harness.vlmevalkit:VLMEVALKIT",
    "vcd": "readout_audit.readouts.harness.vcd:VCD",
    "repope": "readout_audit.readouts.harness.repope:REPOPE",
}
"""Readout name -> "module:attribute" of its object."""


def module_of(name: str) -> str:
    """Return the module that defines a readout, for code digests.

    Raises:
        AuditError: there is no such readout.
    """
    if name not in READOUTS:
        raise AuditError(f"there is no readout {name!r}; there are {', '.join(sorted(READOUTS))}.")
    return READOUTS[name].partition(":")[0]


@cache
def get(name: str) -> Readout:
    """Return a readout by name.

    Raises:
        AuditError: there is no such readout.
    """
    module = module_of(name)
    readout: Readout = getattr(import_module(module), READOUTS[name].partition(":")[2])
    return readout

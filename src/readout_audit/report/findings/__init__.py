"""What a run found beside its scores: one module per kind of finding, `topics` names them all."""

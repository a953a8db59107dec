"""How two readouts of the same run differ: paired transitions and the exact algebra between them."""

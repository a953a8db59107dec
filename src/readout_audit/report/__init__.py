"""One page for people about one run, and the one line that a paper should print about its readout."""

#!/usr/bin/env bash
# Snakemake runs this in the project's folder, in the environment that it has just made of python.yaml, and makes another
# only when one of these two files changes: after a change of requirements.lock remove .snakemake/conda.
set -euo pipefail
pip install --quiet --requirement requirements.lock
pip install --quiet --no-deps --no-build-isolation --editable .

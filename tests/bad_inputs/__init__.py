"""Bad inputs and what comes of each: the tests and tests/bad-inputs.md read the same cases."""

"""Bad inputs and what comes of each: the tests and docs/bad-inputs.md read the same cases."""

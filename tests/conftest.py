"""Settings of all tests."""

import os

from hypothesis import settings

# The same examples in every run, so that a failure is about the change at hand. Look for new ones
# with HYPOTHESIS_PROFILE=search.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("search", derandomize=False, max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

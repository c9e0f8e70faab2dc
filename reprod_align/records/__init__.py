"""Records of arrays: read without running code, compared by the rules of a verdict, logged."""

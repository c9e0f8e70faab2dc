"""The entries, one module a topic; each module's docstring is its title, CHINESE the Chinese one."""

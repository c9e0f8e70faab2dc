"""The commands for agents: a server of the Model Context Protocol, `reprod-align mcp`."""

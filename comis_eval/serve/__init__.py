"""The recall tool served to agents, over the Model Context Protocol.

From the inside out: :mod:`.memories` (the tools over memories), :mod:`.desk` (one thread
that owns them), :mod:`.tools` (how each is described), :mod:`.server` (the protocol),
:mod:`.http` (loopback, tokens).
"""

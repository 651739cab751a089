"""The drivers: ports that touch the kernel, and decoders that turn bytes and edges into observations."""

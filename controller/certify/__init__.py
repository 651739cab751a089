"""The certified journal: canonical leaves, an RFC 6962 tree over them, and a signed checkpoint in every commit."""

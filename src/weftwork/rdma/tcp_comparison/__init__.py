"""TCP sockets and the software NIC, measured side by side.

Two processes of one machine are the client and the server. Each measures both.
"""

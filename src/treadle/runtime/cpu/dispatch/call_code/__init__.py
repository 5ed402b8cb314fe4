"""The trampoline's machine code, in the order in which a call passes through it.

    entry -> checks -> outputs -> program -> results
                |          |         |
                |          +-------- failure
                +-> portable

Each stage up to `portable` adds blocks to one function; what it leaves to later ones is in `Call`.
"""

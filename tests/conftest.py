"""What holds for every test."""

import signal

# Whoever starts the tests in the background of a shell has Ctrl-C ignored, which the programs
# that tests start and interrupt would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

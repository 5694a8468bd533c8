"""Profiles of anything that runs on a device."""

import contextlib
import ctypes
import errno
import json
import os
import secrets
import shlex
import sys

from ._kernel import make_options
from ._library import last_error, library


class Profile:
    """What profile() recorded; str() of it is what attn-prof shows."""

    def __init__(self, text):
        self._text = text
        #: docs/Profile.md
        self.data = json.loads(text)

    def __str__(self):
        return self.show()

    def __repr__(self):
        regions = ", ".join(region["name"] for region in self.data["regions"])
        return f"<attnc.Profile of {regions} on {self.data['environment']['device']}>"

    def show(self, layers=0):
        """Tables and findings as text; with `layers`, what each costs in a model of so many."""
        return self._show(None, layers)[0]

    def expect(self, guesses):
        """Checks guesses such as "kernels=1,path=HGMMA,time<120us" (docs/Profile.md).

        Returns whether all are right; show_guesses() says which.
        """
        return self._show(guesses, 0)[1]

    def show_guesses(self, guesses, layers=0):
        """As show(), with each guess marked right or wrong beside what was measured."""
        return self._show(guesses, layers)[0]

    def save(self, path):
        """For attn-prof."""
        _write(path, self._text)

    def save_trace(self, path):
        """For Perfetto or chrome://tracing."""
        text = library.attnc_profile_trace(self._text, len(self._text))
        if text is None:
            raise last_error()
        _write(path, text)

    def save_report(self, path, guesses=None, layers=0):
        """A page with charts, in one file; guesses and layers as for show_guesses()."""
        text = library.attnc_profile_report(self._text, len(self._text), _encode_guesses(guesses), _check_layers(layers))
        if text is None:
            raise last_error()
        _write(path, text)

    def _show(self, guesses, layers):
        all_right = ctypes.c_int()
        text = library.attnc_profile_show(
            self._text,
            len(self._text),
            _encode_guesses(guesses),
            _check_layers(layers),
            ctypes.byref(all_right),
        )
        if text is None:
            raise last_error()
        return text.decode(), bool(all_right.value)


def profile(function, *, repeat=20, warmup=3, target="native", device=0):
    """Records what a function without arguments runs on the device.

    `function`: or a dictionary of several by name, to compare. Each is called
    once, `warmup` times, and `repeat` times that are reported; the first is
    what the others are compared with. On a GPU all
    kernels are seen, torch's as well; that needs CUPTI. Returns a Profile.

        print(attnc.profile({"ours": lambda: attnc.attention(q, k, v), "torch": lambda: sdpa(q, k, v)}))
    """
    if not isinstance(repeat, int) or not isinstance(warmup, int) or repeat < 1 or warmup < 0:
        raise ValueError("repeat needs to be an integer of 1 or more, warmup of 0 or more")
    functions = function if isinstance(function, dict) else {getattr(function, "__name__", "region"): function}
    if not functions or not all(isinstance(name, str) and callable(call) for name, call in functions.items()):
        raise TypeError("function must be callable, or a dictionary of such, by names")
    options = make_options(target, None, None, None, device, None)
    profiler = library.attnc_profiler_create(ctypes.byref(options))
    if not profiler:
        raise last_error()
    try:
        _check(library.attnc_profiler_set_command(profiler, _get_command().encode(errors="replace")))
        for name, call in functions.items():
            _record(profiler, name, call, repeat, warmup)
        text = library.attnc_profiler_save(profiler)
        if text is None:
            raise last_error()
        return Profile(text)
    finally:
        library.attnc_profiler_release(profiler)


def _get_command():
    """What runs this program; before Python 3.10 its interpreter isn't known."""
    return shlex.join(getattr(sys, "orig_argv", ["python3", *sys.argv]))


def _record(profiler, name, call, repeat, warmup):
    _check(library.attnc_profiler_begin(profiler, name.encode()))
    _phase(profiler, "first", call, 1)
    # Its end waits, so that none of it is left when the next phase begins.
    if warmup:
        _phase(profiler, "warm-up", call, warmup)
    _phase(profiler, "steady", call, repeat)
    _check(library.attnc_profiler_end(profiler))


def _phase(profiler, name, call, count):
    _check(library.attnc_profiler_begin_phase(profiler, name.encode()))
    for _ in range(count):
        call()
    _check(library.attnc_profiler_end_phase(profiler, count))


def _encode_guesses(guesses):
    if guesses is None:
        return None
    if not isinstance(guesses, str):
        raise TypeError(f"guesses must be a string such as 'kernels=1,copies=0', not {type(guesses).__name__}")
    return guesses.encode()


def _check_layers(layers):
    if not isinstance(layers, int):
        raise TypeError(f"layers must be an integer, not {type(layers).__name__}")
    return layers


def _check(status):
    if status:
        raise last_error()


def _write(path, data):
    """Whole or not at all; devices and pipes are written as they are."""
    path = os.path.realpath(os.fsdecode(path))
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb", buffering=0) as file:
            file.write(data)
        return
    if not os.path.isdir(os.path.dirname(path)):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    temporary = f"{path}.{os.getpid()}.{secrets.token_hex(4)}"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise

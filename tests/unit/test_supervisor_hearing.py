"""Signals as histories: what each one orders, and which are heard twice."""

from __future__ import annotations

from signal import Signals

import pytest

from cairnq_supervisor.loop.hearing import Hearing


class Story:
    """Records orders; `can` says whether a reload or a scaling is possible now."""

    def __init__(self, *, can=True):
        self.now = 10.0
        self.can = can
        self.done = []
        self.hearing = Hearing(self, self.emit, lambda: self.now)

    def emit(self, name, **fields):
        self.done.append(f"{name} {fields['signal']}")

    def tell(self, *names, every=0.1):
        for name in names:
            self.hearing.heard(Signals[name])
            self.now += every
        return self.done

    def drain(self, cause):
        self.done.append(f"drain {cause}")

    def hasten(self, cause):
        self.done.append(f"hasten {cause}")

    def quiesce(self):
        self.done.append("quiesce")

    def resume(self):
        self.done.append("resume")

    def reload(self):
        self.done.append("reload")
        return self.can

    def scale(self, step):
        self.done.append(f"scale {step}")
        return self.can

    def show_everything(self):
        self.done.append("show")

    def reap_adopted(self):
        self.done.append("reap")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_the_first_ending_signal_drains_and_its_echo_is_ignored(name):
    assert Story().tell(name, name, "SIGTERM") == [f"drain {name}", f"signal.ignored {name}", "signal.ignored SIGTERM"]


def test_a_second_ctrl_c_after_a_while_hastens_and_a_second_term_does_not():
    assert Story().tell("SIGINT", "SIGINT", every=1.5) == ["drain SIGINT", "hasten SIGINT"]
    assert Story().tell("SIGTERM", "SIGTERM", every=1.5) == ["drain SIGTERM", "signal.ignored SIGTERM"]


def test_quit_hastens_at_any_time():
    assert Story().tell("SIGQUIT") == ["hasten SIGQUIT"]
    assert Story().tell("SIGTERM", "SIGQUIT") == ["drain SIGTERM", "hasten SIGQUIT"]


def test_cont_resumes_only_what_tstp_has_quiesced():
    assert Story().tell("SIGCONT", "SIGTSTP", "SIGCONT", "SIGCONT") == ["quiesce", "resume"]


def test_the_other_signals_are_orders():
    orders = ["reload", "scale 1", "scale -1", "show", "reap"]
    assert Story().tell("SIGHUP", "SIGTTIN", "SIGTTOU", "SIGUSR1", "SIGCHLD") == orders


def test_an_order_that_cannot_be_followed_now_is_said_to_be_ignored():
    assert Story(can=False).tell("SIGHUP") == ["reload", "signal.ignored SIGHUP"]
    assert Story(can=False).tell("SIGTTOU") == ["scale -1", "signal.ignored SIGTTOU"]

"""The configuration as a value: layers, defaults, and every kind of fault at once."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from cairnq_supervisor.pure import dsn, quantities
from cairnq_supervisor.pure.keys import KEYS, from_text, processes
from cairnq_supervisor.pure.settings import Layer, QueueChoice, QueueSettings, combine, parse_choice

APP = "shop.tasks:registry"


def combined(*values, choices=(), cores=4):
    layers = [Layer(f"layer{number}", table) for number, table in enumerate(values)]
    return combine(layers, choices, database="postgresql://h/d", cores=cores)


def accepted(*values, **options):
    settings, faults = combined(*values, **options)
    assert faults == []
    assert settings is not None
    return settings


def faults_of(*values, **options):
    settings, faults = combined(*values, **options)
    assert settings is None
    return [f"{fault.origin}: {fault.key} {fault.problem}" for fault in faults]


def test_an_app_alone_runs_the_default_queue():
    settings = accepted({"app": APP})
    assert settings.queues == (QueueSettings("default"),)
    assert (settings.drain_timeout, settings.boot_timeout, settings.connect_timeout) == (25, 60, 30)
    assert (settings.migrate, settings.preload) == (True, True)


def test_a_queue_inherits_from_the_top_and_overrides_it():
    settings = accepted({"app": APP, "lease": "10s", "queues": {"a": {}, "b": {"lease": "1m", "poll": "250ms"}}})
    assert [queue.lease for queue in settings.queues] == [10, 60]
    assert [queue.poll for queue in settings.queues] == [0.5, 0.25]
    assert settings.shortest_lease == 10


def test_payload_bytes_have_a_ceiling_for_the_host_and_one_for_each_queue_and_neither_stands_for_the_other():
    queues = {"a": {}, "b": {"max_in_flight_bytes": "2MiB"}}
    settings = accepted({"app": APP, "max_in_flight_bytes": "1GiB", "queues": queues})
    assert settings.max_in_flight_bytes == 1 << 30
    assert [queue.max_in_flight_bytes for queue in settings.queues] == [None, 2 << 20]
    [fault] = faults_of({"app": APP, "max_in_flight_bytes": "0B"})
    assert "max_in_flight_bytes" in fault


def test_a_later_layer_wins_key_by_key():
    settings = accepted({"app": APP, "migrate": True, "lease": "10s"}, {"migrate": False}, {"lease": "20s"})
    assert (settings.migrate, settings.queues[0].lease) == (False, 20)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("migrate", "no", False),
        ("preload", "TRUE", True),
        ("migrate", "perhaps", "perhaps"),
        ("max_tasks", "12", 12),
        ("max_tasks", "-1", "-1"),
        ("max_tasks", "\u0664", "\u0664"),
        ("lease", "10s", "10s"),
        ("database", "1", "1"),
    ],
)
def test_the_environment_spells_values_as_text(name, text, value):
    assert from_text(name, text) == value


def test_auto_means_the_cores_of_this_host():
    assert accepted({"app": APP, "queues": {"a": {"processes": "auto"}}}, cores=3).queues[0].processes == 3


def test_a_range_of_processes_starts_with_the_least():
    queue = accepted({"app": APP, "queues": {"a": {"processes": {"min": 2, "max": 5}}}}).queues[0]
    assert (queue.processes, queue.max_processes, queue.most_processes) == (2, 5, 5)
    assert accepted({"app": APP}).queues[0].most_processes == 1


def test_a_choice_of_queues_leaves_the_others_out():
    file = {"app": APP, "queues": {"a": {"processes": 2, "lease": "9s"}, "b": {}}}
    assert [queue.name for queue in accepted(file, choices=[QueueChoice("b")]).queues] == ["b"]
    sized = accepted(file, choices=[QueueChoice("a", 1, 4), QueueChoice("new", 3, 5)]).queues
    assert sized == (
        QueueSettings("a", processes=1, concurrency=4, lease=9),
        QueueSettings("new", processes=3, concurrency=5),
    )


def test_a_chosen_queue_that_is_not_configured_needs_a_size():
    assert (
        "'c' is not configured (configured: a)"
        in faults_of({"app": APP, "queues": {"a": {}}}, choices=[QueueChoice("c")])[0]
    )


@pytest.mark.parametrize(
    ("table", "key", "says"),
    [
        ({}, "app", "is missing"),
        ({"app": "tasks"}, "app", '"module:attribute"'),
        ({"app": "a b:c"}, "app", '"module:attribute"'),
        ({"app": 3}, "app", '"module:attribute"'),
        ({"migrate": "maybe"}, "migrate", "true or false"),
        ({"log": "xml"}, "log", '"text" or "json"'),
        ({"drain_timeout": 25}, "drain_timeout", "a duration"),
        ({"retention": "7d"}, "retention", "a table"),
        ({"retention": {"queued": "7d"}}, "retention", "finished statuses"),
        ({"retention": {"succeeded": 7}}, "retention", "a table"),
        ({"http": ":80"}, "http", "host and port"),
        ({"drain_timeout": "-1s"}, "drain_timeout", "a duration"),
        ({"drain_timeout": "25 parsecs"}, "drain_timeout", "a duration"),
        ({"boot_timeout": "0s"}, "boot_timeout", "longer than zero"),
        ({"lease": "500ms"}, "lease", 'between "1s" and "1d"'),
        ({"schema": ""}, "schema", "not empty"),
        ({"resources": {"gpu": 0}}, "resources", "whole numbers"),
        ({"resources": 4}, "resources", "a table"),
        ({"processes": 2}, "processes", "belongs into a [queues.NAME] table"),
        ({"que": {}}, "que", "did you mean 'queues'?"),
        ({"queues": 3}, "queues", "must be tables"),
        ({"queues": {"a": 3}}, "queues.a", "must be a table"),
        ({"queues": {"a": {"processes": 0}}}, "queues.a.processes", "a whole number from 1 to 256"),
        ({"queues": {"a": {"processes": True}}}, "queues.a.processes", "a whole number from 1 to 256"),
        ({"queues": {"a": {"processes": {"min": 1}}}}, "queues.a.processes", "{min = 1, max = 8}"),
        ({"queues": {"a": {"processes": {"min": 3, "max": 2}}}}, "queues.a.processes", "{min = 1, max = 8}"),
        ({"queues": {"a": {"processes": "2"}}}, "queues.a.processes", "a whole number from 1 to 256"),
        ({"queues": {"a": {"concurrency": "2"}}}, "queues.a.concurrency", "a whole number, 1 or more"),
        ({"migrate": "no"}, "migrate", "true or false"),
        ({"resources": {"gpu": True}}, "resources", "whole numbers"),
        ({"resources": {"gpu": "1"}}, "resources", "whole numbers"),
        ({"queues": {"a": {"concurrency": 2.5}}}, "queues.a.concurrency", "1 or more"),
        ({"queues": {"a": {"handlers": []}}}, "queues.a.handlers", "a list of handler names"),
        ({"queues": {"a": {"handlers": "x"}}}, "queues.a.handlers", "a list of handler names"),
        ({"queues": {"a": {"schema": "x"}}}, "queues.a.schema", "belongs to the top level"),
        ({"queues": {"a": {"retry_backoff": "5m"}}}, "queues.a.retry_backoff", "longer than retry_backoff_max (30s)"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(table, key, says):
    (fault,) = faults_of(table if key == "app" else {"app": APP, **table})
    assert fault.startswith(f"layer0: {key} ")
    assert says in fault


def test_all_faults_of_all_layers_come_together():
    faults = faults_of({"app": "x", "lease": "1ms", "nope": 1, "queues": {"a": {"x": 1}}}, {"migrate": "?"})
    assert [fault.split()[1] for fault in faults] == ["app", "lease", "nope", "queues.a.x", "migrate"]
    assert faults[-1].startswith("layer1: ")


def test_a_wrong_connection_string_is_not_repeated():
    (fault,) = faults_of({"app": APP, "listen_database": ["postgresql://u:secret@h"]})
    assert "secret" not in fault


def test_settings_keep_connection_strings_out_of_their_repr():
    assert "postgresql" not in repr(accepted({"app": APP, "listen_database": "postgresql://u:p@h/d"}))


@pytest.mark.parametrize("argument", ["", "=2:3", "a=", "a=2", "a=2:", "a=:3", "a=0:1", "a=1:0", "a=-1:2", "a=x:y"])
def test_a_malformed_choice_is_refused(argument):
    with pytest.raises(ValueError, match="such as|NAME"):
        parse_choice(argument)


def test_well_formed_choices():
    assert parse_choice("mail") == QueueChoice("mail")
    assert parse_choice("mail=2:16") == QueueChoice("mail", 2, 16)


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("25s", 25), ("1.5m", 90), ("1h", 3600), ("7d", 604800), (" 2 s ", 2)]
)
def test_durations(text, seconds):
    assert quantities.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "5 S", "1e3s", "-1s", "5sec", "1s1s"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="250ms"):
        quantities.duration(text)


@pytest.mark.parametrize(("text", "count"), [("1B", 1), ("512KiB", 524_288), ("64MiB", 67_108_864), ("2GiB", 2**31)])
def test_sizes(text, count):
    assert quantities.size(text) == count


@pytest.mark.parametrize("text", ["2GB", "2", "GiB", "2gib"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="MiB"):
        quantities.size(text)


@pytest.mark.parametrize(("seconds", "text"), [(0.25, "250ms"), (25, "25s"), (90, "90s"), (600, "10m"), (86400, "1d")])
def test_durations_for_people(seconds, text):
    assert quantities.format_duration(seconds) == text
    assert quantities.duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("postgresql://u:secret@h:5/d?sslmode=require", "postgresql://u@h:5/d?sslmode=require"),
        ("postgresql://h/d?user=u&password=secret", "postgresql://h/d?user=u"),
        ("postgresql://u:secret@[", "postgresql://u@["),
        ("postgresql://u:secret@[::1/d?password=x&a=b", "postgresql://u@[::1/d?a=b"),
        ("host=h password=secret user=u", "host=h password=*** user=u"),
        ("host=h sslpassword=secret user=u", "host=h sslpassword=*** user=u"),
        ("postgresql://u@h/d?sslpassword=secret&sslkey=k", "postgresql://u@h/d?sslkey=k"),
        ("host=h password='a secret \\' thing' user=u", "host=h password=*** user=u"),
    ],
)
def test_a_password_is_found_and_taken_out(text, safe):
    assert dsn.has_password(text)
    assert dsn.without_password(text) == safe


@pytest.mark.parametrize(
    "text", ["postgresql://u@h/d", "postgresql:///d", "host=h user=u", "postgresql://h/password", "postgresql://["]
)
def test_no_password_is_no_password(text):
    assert not dsn.has_password(text)
    assert dsn.without_password(text) == text


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sqlite:///cairnq.db", "cairnq.db"),
        ("sqlite:///data/a b%20c?.db", "data/a b%20c?.db"),
        ("sqlite:////var/lib/cairnq.db", "/var/lib/cairnq.db"),
        ("postgresql://h/d", None),
        ("host=h dbname=d", None),
    ],
)
def test_a_file_is_named_by_what_follows_three_slashes(text, path):
    assert dsn.file_of(text) == path
    assert dsn.shown(text) == (path or text)


@pytest.mark.parametrize(
    "text",
    ["sqlite:", "sqlite://", "sqlite:///", "sqlite:a.db", "sqlite://host/a.db", "sqlite:///a/", "sqlite:///:memory:"],
)
def test_what_names_no_file_says_what_would(text):
    with pytest.raises(ValueError, match="sqlite:///cairnq.db"):
        dsn.file_of(text)


def test_the_example_file_is_valid_and_shows_every_key():
    text = (Path(__file__).parents[2] / "cairnq.example.toml").read_text()
    everything = re.sub(r"(?m)^# (?=[a-z_]+ = |\[)", "", text)
    accepted(tomllib.loads(text))
    shown = tomllib.loads(everything)
    keys = {*shown, *(key for queue in shown["queues"].values() for key in queue)}
    assert keys - {"queues"} == set(KEYS)
    plain = accepted(tomllib.loads(text)).queues[0]
    assert plain == QueueSettings("default", processes=2, concurrency=16)


def test_more_processes_than_a_host_can_carry_are_a_slip_of_the_keyboard():
    with pytest.raises(ValueError, match="at most 256"):
        parse_choice("default=100000:1")
    with pytest.raises(ValueError, match="from 1 to 256"):
        processes(100_000)
    assert processes(256) == 256

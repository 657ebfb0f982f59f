"""The manifests: valid by the API's own schemas, and right where no schema can tell."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import psycopg
import pytest
import yaml

from cairnq_supervisor.config import Flags, load
from cairnq_supervisor.pure import quantities
from cairnq_supervisor.pure.settings import parse_choice
from cairnq_supervisor.roles.gateway import PATIENCE
from tests.support.cluster import name_of

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
CUSTOM = {"ScaledObject", "TriggerAuthentication", "ServiceMonitor"}
"""Kinds whose schemas are not the API's: their fields are looked at below."""

REST_OF_A_STOP_S = 5.0


def of(objects, *kinds):
    return [each for each in objects if each["kind"] in kinds]


def the(objects, kind):
    (found,) = of(objects, kind)
    return found


def workers(objects):
    return of(objects, "Deployment")


def pod(workload):
    return workload["spec"]["template"]["spec"]


def container(workload):
    (found,) = pod(workload)["containers"]
    return found


def environment(workload):
    return {each["name"]: each.get("value") for each in container(workload)["env"]}


def configuration(objects):
    (found,) = [each for each in of(objects, "ConfigMap") if "cairnq.toml" in each["data"]]
    return found["data"]["cairnq.toml"]


def matches(selector, labels):
    wanted = selector.get("matchLabels", selector)
    return bool(wanted) and wanted.items() <= labels.items()


def labels(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


@pytest.mark.parametrize("name", sorted(path.name for path in (KUBERNETES / "overlays").iterdir()))
def test_the_api_would_take_every_object(rendered, validator, tmp_path, name):
    manifest = tmp_path / "rendered.yaml"
    manifest.write_text(rendered[name])
    done = subprocess.run([validator, "--strict", manifest], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(re.findall(r"find schema for kind (\w+)", done.stdout + done.stderr)) <= CUSTOM


def test_the_validator_sees_a_misspelt_field(rendered, validator, tmp_path):
    manifest = tmp_path / "rendered.yaml"
    manifest.write_text(rendered["trial"].replace("failureThreshold", "failureTreshold"))
    assert subprocess.run([validator, "--strict", manifest], capture_output=True, check=False).returncode != 0


def test_the_graces_add_up(objects):
    drain = quantities.duration(tomllib.loads(configuration(objects))["drain_timeout"])
    for deployment in workers(objects):
        grace = pod(deployment)["terminationGracePeriodSeconds"]
        assert grace >= drain + REST_OF_A_STOP_S
        assert quantities.duration(environment(deployment)["CAIRNQ_STOP_TIMEOUT"]) == grace


def test_one_deployment_per_queue_from_one_base(objects, tmp_path):
    """And each names a queue that the configuration in the same overlay has."""
    (tmp_path / "cairnq.toml").write_text(configuration(objects))
    for deployment in workers(objects):
        queue = labels(deployment)["cairnq.dev/queue"]
        assert deployment["metadata"]["name"] == f"cairnq-{queue}"
        assert container(deployment)["args"][-2:] == ["--queue", "$(QUEUE)"]
        flags = Flags(config=tmp_path / "cairnq.toml", database="postgresql://x/y", queues=(parse_choice(queue),))
        settings = load(flags, {}).settings
        assert [each.name for each in settings.queues] == [queue]
        assert not settings.migrate
    names = [labels(deployment)["cairnq.dev/queue"] for deployment in workers(objects)]
    assert len(set(names)) == len(names) >= 1


def test_selectors_find_the_pods_of_one_queue_and_no_others(objects):
    pods = {deployment["metadata"]["name"]: labels(deployment) for deployment in workers(objects)}
    job = labels(the(objects, "Job"))
    for deployment in workers(objects):
        name = deployment["metadata"]["name"]
        budget = next(each for each in of(objects, "PodDisruptionBudget") if each["metadata"]["name"] == name)
        service = next(each for each in of(objects, "Service") if each["metadata"]["name"] == name)
        for selector in (deployment["spec"]["selector"], budget["spec"]["selector"], service["spec"]["selector"]):
            assert [each for each in pods if matches(selector, pods[each])] == [name]
            assert not matches(selector, job)


def test_probes_ask_the_gateway_where_it_listens(objects):
    host, _, port = tomllib.loads(configuration(objects))["http"].rpartition(":")
    assert host == "0.0.0.0"
    for deployment in workers(objects):
        (declared,) = container(deployment)["ports"]
        assert declared == {"name": "http", "containerPort": int(port)}
        probes = {
            kind: container(deployment)[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")
        }
        assert {kind: probe["path"] for kind, probe in probes.items()} == {
            "startup": "/readyz",
            "liveness": "/livez",
            "readiness": "/readyz",
        }
        assert {probe["port"] for probe in probes.values()} == {"http"}


def test_a_probe_waits_for_as_long_as_the_gateway_may_take_to_say_no(objects):
    for deployment in workers(objects):
        for kind in ("liveness", "readiness"):
            assert container(deployment)[f"{kind}Probe"]["timeoutSeconds"] > PATIENCE


def test_a_start_may_take_as_long_as_the_supervisor_gives_it(objects):
    for deployment in workers(objects):
        probe = container(deployment)["startupProbe"]
        assert probe["periodSeconds"] * probe["failureThreshold"] > 30 + 60


def test_nothing_runs_with_more_rights_than_it_needs(objects):
    for workload in of(objects, "Deployment", "Job", "StatefulSet"):
        assert pod(workload)["automountServiceAccountToken"] is False
        context = pod(workload)["securityContext"]
        assert (context["runAsNonRoot"], context["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
        inner = container(workload)["securityContext"]
        assert inner["readOnlyRootFilesystem"] is True
        assert inner["allowPrivilegeEscalation"] is False
        assert inner["capabilities"] == {"drop": ["ALL"]}


def test_the_dsn_is_a_file_and_the_migration_has_its_own(objects):
    for workload in [*workers(objects), the(objects, "Job")]:
        assert "CAIRNQ_DSN" not in environment(workload)
        mounts = {each["name"]: each for each in container(workload)["volumeMounts"]}
        assert environment(workload)["CAIRNQ_DSN_FILE"] == mounts["secret"]["mountPath"] + "/dsn"
    keys = {
        workload["kind"]: item["key"]
        for workload in [*workers(objects), the(objects, "Job")]
        for volume in pod(workload)["volumes"]
        if volume["name"] == "secret"
        for item in volume["secret"]["items"]
    }
    assert keys == {"Deployment": "dsn", "Job": "owner-dsn"}


def test_every_image_and_every_reference_resolved(objects):
    configurations = {each["metadata"]["name"] for each in of(objects, "ConfigMap")}
    for workload in [*workers(objects), the(objects, "Job")]:
        assert container(workload)["image"] == "registry.example/shop/cairnq:1"
        volumes = {each["name"]: each for each in pod(workload)["volumes"]}
        assert volumes["config"]["configMap"]["name"] in configurations
    assert len({each["metadata"].get("namespace") for each in objects if each["kind"] != "Namespace"}) == 1


def test_a_scaler_does_not_fight_with_a_fixed_number(objects):
    scaled = {each["spec"]["scaleTargetRef"]["name"] for each in of(objects, "ScaledObject", "HorizontalPodAutoscaler")}
    for deployment in workers(objects):
        assert ("replicas" in deployment["spec"]) is (deployment["metadata"]["name"] not in scaled)


def test_the_targets_are_what_one_pod_can_run(objects):
    configured = tomllib.loads(configuration(objects))["queues"]["default"]
    slots = configured["processes"] * configured["concurrency"]
    for scaled in of(objects, "ScaledObject"):
        (trigger,) = scaled["spec"]["triggers"]
        assert int(trigger["metadata"]["targetQueryValue"]) == slots
    for scaled in of(objects, "HorizontalPodAutoscaler"):
        (metric,) = scaled["spec"]["metrics"]
        assert int(metric["external"]["target"]["averageValue"]) == slots
        assert metric["external"]["metric"]["selector"] == {"matchLabels": {"queue": "default"}}


async def test_the_scalers_question_counts_what_is_due_and_what_runs(rendered, client, database):
    scaled = the(list(yaml.safe_load_all(rendered["keda"])), "ScaledObject")
    query = scaled["spec"]["triggers"][0]["metadata"]["query"]
    for _ in range(3):
        await client.submit("due")
    await client.submit("later", delay_ms=3_600_000)
    await client.submit("elsewhere", queue="other")
    await client.store.claim(["default"], "worker_x", limit=1)
    manifest = (KUBERNETES / "components" / "keda" / "authentication.yaml").read_text()
    role = f"cairnq_scaler_{name_of(database)}"
    (grant,) = re.findall(r"grant select .*(?= to cairnq_scaler;)", manifest)
    with psycopg.connect(database) as connection:  # the role goes with what is rolled back
        connection.execute(f"create role {role}; {grant} to {role}; set role {role}")
        assert connection.execute(query).fetchone() == (3,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select payload from cairnq_tasks")
        connection.rollback()


def test_fields_of_kinds_without_a_schema_are_ones_that_there_are(objects):
    for scaled in of(objects, "ScaledObject"):
        known = {
            "scaleTargetRef",
            "pollingInterval",
            "cooldownPeriod",
            "minReplicaCount",
            "maxReplicaCount",
            "triggers",
        }
        assert scaled["spec"].keys() <= known
        (trigger,) = scaled["spec"]["triggers"]
        assert trigger.keys() == {"type", "metadata", "authenticationRef"}
        assert trigger["metadata"].keys() == {"query", "targetQueryValue", "activationTargetQueryValue"}
        authentication = the(objects, "TriggerAuthentication")
        assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]
        assert authentication["spec"]["secretTargetRef"][0].keys() == {"parameter", "name", "key"}
    for monitor in of(objects, "ServiceMonitor"):
        assert monitor["spec"].keys() == {"selector", "targetLabels", "endpoints"}
        for service in of(objects, "Service"):
            assert matches(monitor["spec"]["selector"], service["metadata"]["labels"])

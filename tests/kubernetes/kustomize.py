# SPDX-License-Identifier: Apache-2.0
"""The part of kustomize that deploy/kubernetes uses, so that its result can be tested without kustomize.

render(FOLDER) returns the objects. It supports resources, configMapGenerator (files; behavior create and merge),
patches (strategic merge by path, with $patch: delete; of the target's kind, which they may rename), images, namespace.
Anything else is an error: a new feature must be added here first. A generated ConfigMap's name ends in a hash of its
data, and so do references to it; the hash is not kustomize's own.
"""

import copy
import hashlib
import json
import pathlib

import yaml

# The field by which a list of maps is merged, by the list's name; the first match counts.
MERGE_KEYS = {"containers": "name", "initContainers": "name", "env": "name", "volumes": "name",
              "volumeMounts": "mountPath", "topologySpreadConstraints": "topologyKey", "ports": "containerPort",
              "tolerations": None, "args": None, "command": None}
CLUSTER_WIDE = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
KNOWN = {"apiVersion", "kind", "namespace", "resources", "configMapGenerator", "patches", "images"}


class Loader(yaml.SafeLoader):
    """Reads YAML as Kubernetes does: a key that is given twice is an error."""


def _mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"{node.start_mark}: {key} is given twice")
    return {loader.construct_object(key): loader.construct_object(value, deep=True) for key, value in node.value}


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load(path):
    """Returns the documents of a file."""
    return [each for each in yaml.load_all(pathlib.Path(path).read_text(), Loader) if each is not None]


def identity(item):
    return item["apiVersion"], item["kind"], item["metadata"]["name"]


def merge(base, patch, field=""):
    """Does a strategic merge: maps are merged, lists of maps by their key, other lists are replaced."""
    if isinstance(patch, dict) and isinstance(base, dict):
        merged = dict(base)
        for key, value in patch.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = merge(merged[key], value, key) if key in merged else value
        return merged
    key = MERGE_KEYS.get(field)
    if isinstance(patch, list) and isinstance(base, list) and key:
        merged = list(base)
        for each in patch:
            at = next((i for i, old in enumerate(merged) if old.get(key) == each[key]), None)
            if each.get("$patch") == "delete":
                if at is None:
                    raise ValueError(f"{field}: nothing has {key} {each[key]}, which is to be deleted")
                del merged[at]
            elif at is None:
                merged.append(each)
            else:
                merged[at] = merge(merged[at], each, field)
        return merged
    return patch


def _config_maps(folder, generators, items):
    for generator in generators:
        extra = set(generator) - {"name", "files", "behavior"}
        if extra:
            raise ValueError(f"{folder}: configMapGenerator: {extra} is not known to this renderer")
        data = {}
        for entry in generator["files"]:
            name, _, path = entry.rpartition("=")
            data[name or path] = (folder / path).read_text()
        item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data}
        old = [each for each in items if identity(each) == identity(item)]
        if (generator.get("behavior", "create") == "merge") != bool(old):
            raise ValueError(f"{folder}: ConfigMap {generator['name']}: behavior and what there is differ")
        if old:
            old[0]["data"].update(data)
        else:
            items.append(item)


def _images(items, images):
    for each in containers(items):
        for image in images:
            if each["image"].split(":")[0] == image["name"]:
                each["image"] = f"{image.get('newName', image['name'])}:{image['newTag']}"


def containers(items):
    """Yields the containers of all pods in `items`."""
    for item in items:
        pod = pod_spec(item)
        if pod:
            yield from pod.get("containers", [])
            yield from pod.get("initContainers", [])


def pod_spec(item):
    return item.get("spec", {}).get("template", {}).get("spec") if isinstance(item.get("spec"), dict) else None


def _build(folder):
    file = load(folder / "kustomization.yaml")[0]
    if set(file) - KNOWN:
        raise ValueError(f"{folder}: {set(file) - KNOWN} is not known to this renderer")
    items = []
    for resource in file.get("resources", []):
        path = (folder / resource).resolve()
        for item in _build(path) if path.is_dir() else load(path):
            if any(identity(item) == identity(old) for old in items):
                raise ValueError(f"{folder}: {identity(item)} is there twice")
            items.append(copy.deepcopy(item))
    _config_maps(folder, file.get("configMapGenerator", []), items)
    for patch in file.get("patches", []):
        renames = {"target": {"kind": patch.get("target", {}).get("kind")}, "options": {"allowNameChange": True}}
        if {key: value for key, value in patch.items() if key != "path"} not in ({}, renames):
            raise ValueError(f"{folder}: patches: {patch}: this renderer knows path, and with it {renames}")
        for change in load(folder / patch["path"]):
            at = [i for i, item in enumerate(items) if identity(item) == identity(change)
                  or item["kind"] == renames["target"]["kind"]]
            if len(at) != 1:
                raise ValueError(f"{folder}: {patch['path']}: no object {identity(change)}")
            items[at[0]] = merge(items[at[0]], change)
    _images(items, file.get("images", []))
    if "namespace" in file:
        for item in items:
            if item["kind"] not in CLUSTER_WIDE:
                item["metadata"]["namespace"] = file["namespace"]
    return items


def _name_config_maps(items):
    names = {}
    for item in items:
        if item["kind"] == "ConfigMap":
            digest = hashlib.sha256(json.dumps(item["data"], sort_keys=True).encode()).hexdigest()[:10]
            names[item["metadata"]["name"]] = f"{item['metadata']['name']}-{digest}"
            item["metadata"]["name"] = names[item["metadata"]["name"]]
    for item in items:
        for volume in (pod_spec(item) or {}).get("volumes", []):
            if "configMap" in volume:
                volume["configMap"]["name"] = names[volume["configMap"]["name"]]
        # kustomize takes a Role's names for those of ConfigMaps, whatever resources its rule is about.
        for rule in item.get("rules", []) if item["kind"] in ("Role", "ClusterRole") else []:
            if "resourceNames" in rule:
                rule["resourceNames"] = [names.get(name, name) for name in rule["resourceNames"]]


def render(folder):
    items = _build(pathlib.Path(folder).resolve())
    _name_config_maps(items)
    return items

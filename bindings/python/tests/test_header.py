"""simba/_c.py says what simba.h says: a C program prints sizes, offsets and constants, and the list of functions is
read from the header. So neither can go stale."""
import ctypes
import pathlib
import re
import shutil
import subprocess

import pytest
import simba
from simba import _c, _errors

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADER = ROOT / "include/simba.h"
STRUCTS = {"simba_owner": _c.Owner, "simba_note": _c.Note, "simba_state": _c.State, "simba_trouble": _c.Trouble,
           "simba_entry": _c.Entry, "simba_event": _c.Event,
           "simba_histogram": _c.Histogram, "simba_metrics": _c.Metrics, "simba_handle_metrics": _c.HandleMetrics,
           "simba_options": _c.Options, "simba_handle_options": _c.HandleOptions, "simba_schedule": _c.Schedule}
NOT_USED = {"simba_executor"}
CONSTANTS = {"SIMBA_DEFAULT": _c.DEFAULT, "SIMBA_FOREVER": _c.FOREVER, "SIMBA_ID_MAX": _c.ID_MAX,
             "SIMBA_NO_THREAD": _c.NO_THREAD, "SIMBA_OWNER_EVICTED": _c.OWNER_EVICTED,
             "SIMBA_PER_HANDLE": _c.PER_HANDLE, "SIMBA_FIXED_RATE": 0, "SIMBA_FIXED_DELAY": 1, "SIMBA_CRON": 2,
             "SIMBA_MISSED_SKIP": 0, "SIMBA_MISSED_ONCE": 1, "SIMBA_MISSED_ALL": 2,
             **{f"SIMBA_{one.name}": one.value for one in [*simba.Status, *simba.Reason]},
             **{f"SIMBA_LOG_{one.name}": one.value for one in simba.Level},
             **{f"SIMBA_EVENT_{one.name}": one.value for one in simba.EventKind}}


@pytest.fixture(scope="module")
def header():
    """The header without comments."""
    if not HEADER.exists():
        pytest.skip("simba.h is not in its place beside the binding")
    return re.sub(r"/\*.*?\*/", " ", HEADER.read_text(), flags=re.S)


@pytest.fixture(scope="module")
def facts(header, tmp_path_factory):
    """What the compiler says: a number for each name."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler")
    lines = ["SHOW(%s, %s)" % (name, name) for name in CONSTANTS]
    for name, struct in STRUCTS.items():
        lines.append(f"SHOW({name}, sizeof(struct {name}))")
        for field, *_ in struct._fields_:
            lines.append(f"SHOW({name}.{field}, offsetof(struct {name}, {field}))")
            lines.append(f"SHOW({name}.{field}.size, sizeof(((struct {name} *)0)->{field}))")
    folder = tmp_path_factory.mktemp("header")
    (folder / "facts.c").write_text(
        "#include <simba.h>\n#include <stdio.h>\n"
        "#define SHOW(name, value) printf(\"%s %lld\\n\", #name, (long long)(value));\n"
        "#define X(name, code, text) SHOW(E##name, code)\n"
        "int main(void)\n{\nSIMBA_ERRORS(X)\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    subprocess.run([compiler, "-I", ROOT / "include", folder / "facts.c", "-o", folder / "facts"], check=True)
    out = subprocess.run([folder / "facts"], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in (line.rsplit(" ", 1) for line in out.splitlines())}


@pytest.mark.parametrize("name", STRUCTS)
def test_struct(facts, name):
    struct = STRUCTS[name]
    assert ctypes.sizeof(struct) == facts[name]
    for field, *_ in struct._fields_:
        ours = getattr(struct, field)
        assert (field, ours.offset, ours.size) == (field, facts[f"{name}.{field}"], facts[f"{name}.{field}.size"])


def test_all_structs_and_fields(header):
    found = dict(re.findall(r"^struct (simba_\w+) \{(.*?)^\};", header, re.M | re.S))
    assert set(found) - NOT_USED == set(STRUCTS)
    for name, struct in STRUCTS.items():
        for field, *_ in struct._fields_:
            assert re.search(rf"\b{field}\b", found[name]), f"struct {name} has no {field}"


def test_constants(facts):
    for name, value in CONSTANTS.items():
        assert (name, value) == (name, facts[name])


def test_enums_are_whole(header):
    names = set(re.findall(r"\bSIMBA_[A-Z_]+\b", " ".join(re.findall(r"^enum simba_(?!error)\w+ \{(.*?)\};", header,
                                                                      re.M | re.S))))
    assert names <= set(CONSTANTS)


def test_errors(facts):
    codes = {value for name, value in facts.items() if re.fullmatch("E[A-Z]+", name)}
    assert codes == set(_errors.CLASSES)


def c_type(text):
    """What a parameter or result of this type must be in FUNCTIONS."""
    text = re.sub(r"\bconst\b", " ", text)
    stars = text.count("*")
    base = re.sub(r"struct|enum|\*", " ", text).split()[0]
    functions = {"simba_entry_fn": _c.EntryFn, "simba_finding_fn": _c.LineFn, "simba_done_fn": _c.DoneFn,
                 "simba_handle_metrics_fn": _c.HandleMetricsFn, "simba_work_fn": _c.WorkFn}
    if base in functions:
        return functions[base]
    if base in STRUCTS:
        return ctypes.POINTER(STRUCTS[base])
    if base == "char":
        return (ctypes.c_char_p, ctypes.c_void_p)  # in, out
    if stars == 2:
        return ctypes.POINTER(ctypes.c_void_p)
    if base == "int64_t" and stars:
        return ctypes.POINTER(ctypes.c_int64)
    plain = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t,
             "bool": ctypes.c_bool, "uint32_t": ctypes.c_uint32}
    if stars:
        return ctypes.c_void_p
    return None if base == "void" else plain.get(base, ctypes.c_int)  # else an enum


def declared(header):
    text = re.sub(r"^\s*#.*?(?<!\\)$", "", header, flags=re.M | re.S)
    for result, name, takes in re.findall(r"^((?:const )?(?:enum )?\w+[\s*]+)simba_(\w+)\(([^()]*)\);", text, re.M):
        takes = [] if takes.strip() == "void" else takes.split(",")
        yield name, [c_type(result), *map(c_type, takes)]


def test_functions(header):
    found = dict(declared(header))
    assert set(found) == set(_c.FUNCTIONS)
    for name, types in found.items():
        ours = _c.FUNCTIONS[name]
        assert len(ours) == len(types), name
        for mine, its in zip(ours, types):
            assert mine in its if isinstance(its, tuple) else mine is its, f"{name}: {mine}, not {its}"


def test_version_is_that_of_the_project():
    text = (ROOT / "CMakeLists.txt").read_text()
    version = re.search(r"project\(simba VERSION ([\d.]+)", text).group(1)
    package = re.search(r'^version = "(.*)"', (ROOT / "bindings/python/pyproject.toml").read_text(), re.M).group(1)
    assert package == version

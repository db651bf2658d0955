"""A build backend (PEP 517, PEP 660) for a package that is nothing but Python files.

setuptools would do, but pip fetches it from the network for every build.
"""
import base64
import hashlib
import io
import pathlib
import tarfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
NAME = f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}"
METADATA = f"""Metadata-Version: 2.1
Name: {PROJECT['name']}
Version: {PROJECT['version']}
Summary: {PROJECT['description']}
License: {PROJECT['license']['text']}
Requires-Python: {PROJECT['requires-python']}
Description-Content-Type: text/markdown

"""


def metadata():
    return METADATA + (HERE / "README.md").read_text(encoding="utf-8")


def sources():
    return sorted(path for path in (HERE / "simba").iterdir() if path.suffix in (".py", ".typed"))


def write_wheel(folder, files):
    info = f"{NAME}.dist-info"
    files = {**files, f"{info}/METADATA": metadata().encode(),
             f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: simba\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"{NAME}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            out.writestr(zipfile.ZipInfo(name), data)  # with the time of 1980: the same files, the same wheel
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {f"simba/{path.name}": path.read_bytes() for path in sources()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {"simba-lock.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    files = {path.relative_to(HERE).as_posix(): path.read_bytes()
             for path in [HERE / "pyproject.toml", HERE / "backend.py", HERE / "README.md", *sources()]}
    files["PKG-INFO"] = metadata().encode()
    with tarfile.open(pathlib.Path(sdist_directory) / f"{NAME}.tar.gz", "w:gz") as out:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"{NAME}/{name}")
            entry.size = len(data)
            out.addfile(entry, io.BytesIO(data))
    return f"{NAME}.tar.gz"

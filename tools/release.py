#!/usr/bin/env python3
"""The packages of a release, below dist/.

    tools/release                          of the tag v0.2.0 that HEAD has
    tools/release --snapshot               of HEAD, whatever it is: to try it
    tools/release --snapshot debian rpm    only these
    tools/release --compare dist           make it again and compare

Everything is made from the commit, in temporary directories; files that are not committed do not matter.  The version
is the one of pgaq.control.  RELEASING.md says what a person does before and after.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as xml
import zipfile
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parent.parent
MAINTAINER = "pgaq maintainers <maintainers@users.noreply.github.com>"
# modules of jms/ that programs use; the others are tests and a demo
ARTIFACTS = ["pgaq-jms", "pgaq-jms-javax", "pgaq-jms-opentelemetry", "pgaq-spring-boot-starter", "pgaq-spring-boot3-starter"]
POM = "{http://maven.apache.org/POM/4.0.0}"


class ReleaseError(Exception):
    """Why there is no release, in a sentence."""


@dataclass(frozen=True)
class Release:
    """The commit and its version, as each kind of package writes it."""

    commit: str
    epoch: int
    version: str
    snapshot: bool

    @property
    def date(self) -> datetime:
        return datetime.fromtimestamp(self.epoch, timezone.utc)

    @property
    def mark(self) -> str:
        """What tells a snapshot from the release."""
        return f"git{self.date:%Y%m%d}g{self.commit[:8]}" if self.snapshot else ""

    @property
    def source(self) -> str:
        """Semantic version 1.0, as PGXN asks."""
        return f"{self.version}-{self.mark}" if self.snapshot else self.version

    @property
    def package(self) -> str:
        """Of Debian and RPM: before the release."""
        return f"{self.version}~{self.mark}" if self.snapshot else self.version

    @property
    def python(self) -> str:
        return f"{self.version}.dev{self.date:%Y%m%d}" if self.snapshot else self.version

    @property
    def maven(self) -> str:
        return f"{self.version}-SNAPSHOT" if self.snapshot else self.version


def run(*command: str | Path, cwd: Path | None = None, more: dict[str, str] | None = None) -> str:
    """Standard output of a program; an error shows all that it said."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PG_CONFIG", "MAKEFLAGS", "PYTHONPATH", "PYTHONSAFEPATH")
    }
    # the system's compilers and interpreters only, as in a fresh root
    environment |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"} | (more or {})
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if result.returncode != 0:
        said = "\n".join((result.stdout + result.stderr).splitlines()[-60:])
        raise ReleaseError(f"{' '.join(str(part) for part in command)} failed:\n{said}")
    return result.stdout


def git(*arguments: str) -> str:
    return run("git", "-C", ROOT, *arguments).rstrip("\n")


def find(what: str, text: str) -> str:
    found = re.search(what, text, re.M)
    if not found:
        raise ReleaseError(f"{what!r} was not found")
    return found[1]


def release_of(commit: str, snapshot: bool) -> Release:
    """The release of a commit, if it is one: tagged, clean, and all its versions the same."""
    full = git("rev-parse", "--verify", f"{commit}^{{commit}}")
    show = lambda path: git("show", f"{full}:{path}")  # noqa: E731
    version = find(r"^default_version = '(.+)'", show("pgaq.control"))
    stated = {
        "pgaq_oracle.control": find(r"^default_version = '(.+)'", show("pgaq_oracle.control")),
        "pgaq_lab.control": find(r"^default_version = '(.+)'", show("pgaq_lab.control")),
        "python/pyproject.toml": find(r'^version = "(.+)"', show("python/pyproject.toml")),
        "python/pgaq/command/common.py": find(r'^VERSION = "(.+?)"', show("python/pgaq/command/common.py")),
        "python/pgaq.1": find(r'"pgaq ([\d.]+)"', show("python/pgaq.1")),
        "jms/pom.xml": find(r"<version>(.+?)-SNAPSHOT</version>", show("jms/pom.xml")),
    }
    for path, other in stated.items():
        if other != version:
            raise ReleaseError(f"{path} has version {other}, pgaq.control {version}")
    if not snapshot:
        find(rf"^(## {re.escape(version)})", show("CHANGELOG.md"))
        if f"v{version}" not in git("tag", "--points-at", full).splitlines():
            raise ReleaseError(f"the commit has no tag v{version}; use --snapshot to try a commit without one")
        if git("status", "--porcelain"):
            raise ReleaseError("the tree has changes that are not committed")
    return Release(full, int(git("show", "-s", "--format=%ct", full)), version, snapshot)


class Build:
    """One run: where it works, where results go, and the source archive that everything is made of."""

    def __init__(self, release: Release, work: Path, dist: Path) -> None:
        self.release, self.work, self.dist = release, work, dist
        self.name = f"pgaq-{release.source}"
        self.environment = {"SOURCE_DATE_EPOCH": str(release.epoch)}
        self.archive("tar")

    def archive(self, form: str) -> Path:
        """The committed files, without those of .gitattributes, and META.json."""
        meta = git("show", f"{self.release.commit}:packaging/META.json.in")
        meta = meta.replace("@VERSION@", self.release.source).replace("@STATUS@", "testing" if self.release.snapshot else "stable")
        check_meta(json.loads(meta), self.release.source)
        path = self.work / f"{self.name}.{form}"
        git(
            "archive",
            f"--format={form}",
            f"--prefix={self.name}/",
            f"--add-virtual-file={self.name}/META.json:{meta}\n",
            "-o",
            str(path),
            self.release.commit,
        )
        return path

    def folder(self, part: str) -> Path:
        path = self.dist / part
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def unpacked(self, part: str) -> Path:
        """A tree of its own for a part."""
        path = self.work / part
        path.mkdir()
        run("tar", "-xf", self.work / f"{self.name}.tar", "-C", path)
        return path / self.name

    def run(self, *command: str | Path, cwd: Path, **more: str) -> str:
        return run(*command, cwd=cwd, more=self.environment | more)


# --- source: tar for packagers, zip for PGXN -------------------------------------


def check_meta(meta: dict, version: str) -> None:
    """What PGXN's specification, version 1.0.0, demands of META.json."""
    for key in ("name", "version", "abstract", "maintainer", "license", "provides", "meta-spec"):
        if not meta.get(key):
            raise ReleaseError(f"META.json lacks {key}")
    if not re.fullmatch(r"\d+\.\d+\.\d+(-[a-zA-Z][0-9A-Za-z-]*)?", version):
        raise ReleaseError(f"META.json: {version} is no semantic version")
    for name, extension in meta["provides"].items():
        if not extension.get("file") or not extension.get("version"):
            raise ReleaseError(f"META.json: {name} lacks file or version")
        for path in (extension["file"], extension.get("docfile")):
            if path and not (ROOT / path).exists():
                raise ReleaseError(f"META.json: there is no {path}")


def compressed(path: Path, to: Path) -> None:
    with open(to, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as stream:
        stream.write(path.read_bytes())


def make_source(build: Build) -> None:
    folder = build.folder("source")
    shutil.copy(build.archive("zip"), folder)
    compressed(build.work / f"{build.name}.tar", folder / f"{build.name}.tar.gz")


# --- Debian ------------------------------------------------------------------------


def postgres_versions() -> list[str]:
    """Versions whose server headers Debian's packages have installed."""
    found = (path.parts[4] for path in Path("/usr/include/postgresql").glob("*/server/postgres.h"))
    return sorted((v for v in found if Path(f"/usr/lib/postgresql/{v}/bin/pg_config").exists()), key=int)


def build_options(versions: list[str]) -> dict[str, str]:
    options = f"{os.environ.get('DEB_BUILD_OPTIONS', '')} parallel={os.cpu_count()}"
    return {"PG_SUPPORTED_VERSIONS": " ".join(versions), "DEB_BUILD_OPTIONS": options}


def debian_tree(build: Build, part: str, codename: str, more: dict[str, str]) -> Path:
    """What dpkg-buildpackage takes."""
    release, tree = build.release, build.unpacked(part)
    compressed(build.work / f"{build.name}.tar", tree.parent / f"pgaq_{release.package}.orig.tar.gz")
    git("archive", "-o", str(build.work / "debian.tar"), "--prefix=debian/", f"{release.commit}:debian")
    run("tar", "-xf", build.work / "debian.tar", "-C", tree)
    what = f"  * Snapshot of commit {release.commit[:12]}." if release.snapshot else f"  * Release {release.version}: see CHANGELOG.md."
    (tree / "debian/changelog").write_text(
        f"pgaq ({release.package}-1) {codename}; urgency=medium\n\n{what}\n\n -- {MAINTAINER}  {format_datetime(release.date)}\n"
    )
    build.run("pg_buildext", "updatecontrol", cwd=tree, **more)
    return tree


def keep_debian(build: Build, built: Path, part: str) -> None:
    """Checks the packages and puts them into the folder."""
    # the first upload to Debian closes a bug; this is none
    suppressed = ("--suppress-tags", "initial-upload-closes-no-bugs")
    build.run("lintian", "--allow-root", *suppressed, "--fail-on", "error,warning", *built.glob("*.changes"), cwd=built)
    folder = build.folder(part)
    for path in built.iterdir():
        if path.is_file():
            shutil.copy(path, folder)


def make_debian(build: Build) -> None:
    versions = postgres_versions()
    if not versions:
        raise ReleaseError("no postgresql-server-dev-* is installed")
    more = build_options(versions)
    tree = debian_tree(build, "debian", find(r"^VERSION_CODENAME=(.+)", Path("/etc/os-release").read_text()), more)
    build.run("dpkg-buildpackage", "-us", "-uc", cwd=tree, **more)
    keep_debian(build, tree.parent, "debian")


# --- Debian, of other suites ---------------------------------------------------------

SUITES = {"17": ("trixie",), "18": ("sid",), "19": ("sid", "experimental")}
COMPILE = """
cd /build/{name}
apt-get install -q -y --no-install-recommends postgresql-server-dev-{version} libpq-dev/{suite} libpq5/{suite}
apt-get build-dep -q -y --no-install-recommends .
env {environment} dpkg-buildpackage -us -uc -B
mv /build/*.deb /build/*.changes /build/*.buildinfo /build/built
"""
TRY = """
printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
apt-get install -q -y --no-install-recommends /build/*.deb libpq5/{suite}
/build/send-and-receive
"""
# as CloudNativePG mounts it, which needs extension_control_path (18)
TRY_IMAGE = """
apt-get remove -q -y postgresql-{version}-pgaq
mkdir /extensions
cp -r /build/image /extensions/pgaq
pg_virtualenv -v {version} -o shared_preload_libraries=pgaq -o 'dynamic_library_path=$libdir:/extensions/pgaq/lib' \\
	-o 'extension_control_path=$system:/extensions/pgaq/share' /build/send-and-receive session
"""


def in_root(build: Build, suites: tuple[str, ...], folder: Path, script: str) -> None:
    """Copies the folder to /build of a new root of these suites, runs the script there, and copies /build/built back."""
    (folder / "script").write_text(script)
    (folder / "built").mkdir()
    hooks = ('mkdir "$1/build"', f"sync-in {folder} /build", 'chroot "$1" sh -eux /build/script', f"sync-out /build/built {folder}/built")
    build.run(
        # what it mounts, and its processes, are gone when it ends, however it ends
        *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("mmdebstrap", "--variant=minbase", "--format=null", "--include=ca-certificates", "--dpkgopt=force-unsafe-io"),
        *("--skip=cleanup", '--aptopt=APT::Sandbox::User "root"', "--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr"),
        *(f"--customize-hook={hook}" for hook in hooks),
        *(suites[0], "-", *(f"deb http://deb.debian.org/debian {suite} main" for suite in suites)),
        cwd=folder,
    )


def make_debian_of(build: Build, version: str) -> None:
    """The package of the extension for the PostgreSQL of another suite: built in a root of that suite, and tried in a second one."""
    commands = list((build.dist / "debian").glob(f"pgaq_{build.release.package}-*_all.deb"))
    if not commands:
        raise ReleaseError("there is no package of this version in dist/debian: make debian first")
    part, suites, more = f"debian-{version}", SUITES[version], build_options([version])
    tree = debian_tree(build, part, suites[-1], more)
    environment = shlex.join(f"{name}={value}" for name, value in (build.environment | more).items())
    in_root(build, suites, tree.parent, COMPILE.format(name=tree.name, suite=suites[-1], version=version, environment=environment))
    attempt = build.work / f"{part}-attempt"
    attempt.mkdir()
    (package,) = (tree.parent / "built").glob(f"postgresql-{version}-pgaq_*.deb")
    for path in [package, *commands, tree / "debian/tests/send-and-receive"]:
        shutil.copy(path, attempt)
    attempts = TRY
    if int(version) >= 18:
        attempts += TRY_IMAGE
        write_extension_image(build, package, version, attempt / "image")
    in_root(build, suites, attempt, attempts.format(suite=suites[-1], version=version))
    keep_debian(build, tree.parent / "built", part)


# --- RPM -----------------------------------------------------------------------------


def filled(text: str, release: Release, **more: str) -> str:
    """A template of packaging/ with its @NAMES@."""
    values = {
        "VERSION": release.package,
        "SOURCE": release.source,
        "COMMIT": release.commit,
        "DATE": f"{release.date:%a %b %d %Y}",
        "MAINTAINER": MAINTAINER,
    } | more
    return re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], text)


# where the packages of the PostgreSQL yum repository are: those of Debian are elsewhere
PG_CONFIG = """#!/bin/sh
case $1 in
	--pkglibdir) echo /usr/pgsql-{v}/lib ;;
	--sharedir) echo /usr/pgsql-{v}/share ;;
	--docdir) echo /usr/pgsql-{v}/doc ;;
	*) exec /usr/lib/postgresql/{v}/bin/pg_config "$@" ;;
esac
"""


def make_rpm(build: Build) -> None:
    """The source package, and a binary one to see that it builds: those for users are built on their distribution."""
    version = postgres_versions()[-1]
    # the package contains the names of these directories: they are the same in each run
    top = Path("/var/tmp/pgaq-rpmbuild")
    try:
        top.mkdir()
    except FileExistsError:
        raise ReleaseError(f"{top} exists: another run uses it, or one was killed and left it") from None
    try:
        _rpm(build, top, version)
    finally:
        shutil.rmtree(top)


def _rpm(build: Build, top: Path, version: str) -> None:
    (top / "bin").mkdir(parents=True)
    compressed(build.work / f"{build.name}.tar", top / f"{build.name}.tar.gz")
    spec = git("show", f"{build.release.commit}:packaging/pgaq.spec.in") + "\n"
    (top / "pgaq.spec").write_text(filled(spec, build.release, PGMAJORVERSION=version))
    (top / "bin/pg_config").write_text(PG_CONFIG.format(v=version))
    (top / "bin/pg_config").chmod(0o755)
    # no machine and no hour in the packages
    defines = {
        "_topdir": top, "_sourcedir": top, "_buildhost": "localhost", "use_source_date_epoch_as_buildtime": 1, "clamp_mtime_to_source_date_epoch": 1,
        "build_mtime_policy": "clamp_to_source_date_epoch", "debug_package": "%{nil}",
    }  # fmt: skip
    rpmbuild = ["rpmbuild", "--nodeps", *(word for name, value in defines.items() for word in ("--define", f"{name} {value}"))]
    # the times of the files that it takes are kept in the source package
    for path in top.iterdir():
        os.utime(path, (build.release.epoch, build.release.epoch))
    build.run(*rpmbuild, "-bs", "pgaq.spec", cwd=top)
    build.run(*rpmbuild, "-bb", "pgaq.spec", cwd=top, PATH=f"{top}/bin:/usr/sbin:/usr/bin:/sbin:/bin", COPT="-O0")
    files = set(build.run("rpm", "-qlp", *(top / "RPMS").glob("*/*.rpm"), cwd=top).split())
    wanted = {
        "/usr/bin/pgaq",
        "/usr/share/pgaq/pgaq/command/main.py",
        *(f"/usr/lib/systemd/system/pgaq-{unit}.service" for unit in ("notify@", "metrics", "console")),
        f"/usr/pgsql-{version}/lib/pgaq.so",
        *(f"/usr/pgsql-{version}/share/extension/{name}.control" for name in ("pgaq", "pgaq_oracle", "pgaq_lab")),
    }
    if wanted - files:
        raise ReleaseError(f"the RPM packages lack {', '.join(sorted(wanted - files))}")
    folder = build.folder("rpm")
    for path in [*(top / "SRPMS").iterdir(), top / "pgaq.spec"]:
        shutil.copy(path, folder)


# --- Python --------------------------------------------------------------------------


def make_python(build: Build) -> None:
    tree = build.unpacked("python") / "python"
    shutil.copy(tree.parent / "LICENSE", tree)
    project = tree / "pyproject.toml"
    project.write_text(re.sub(r'^version = ".*"', f'version = "{build.release.python}"', project.read_text(), flags=re.M))
    build.run("python3", "-m", "build", "--no-isolation", "--sdist", "--wheel", cwd=tree)
    folder = build.folder("python")
    (sdist,) = (tree / "dist").glob("*.tar.gz")
    (wheel,) = (tree / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    if any(name.startswith("pgaq_proof/") for name in names) or "pgaq/command/main.py" not in names:
        raise ReleaseError("the wheel does not have what it should have")
    shutil.copy(wheel, folder)
    repack(sdist, folder / sdist.name, build.release.epoch)


def repack(source: Path, to: Path, epoch: int) -> None:
    """The same tar.gz without times and users of this machine: setuptools writes them."""
    written = io.BytesIO()
    with tarfile.open(source) as old, tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode, member.pax_headers = 0o755 if member.isdir() or member.mode & 0o100 else 0o644, {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    with open(to, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as stream:
        stream.write(written.getvalue())


# --- Maven ---------------------------------------------------------------------------


def write_zip(to: Path, files: dict[str, bytes], date: datetime) -> None:
    """A zip whose bytes depend on its content only."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date.timetuple()[:6])
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED)


def check_pom(path: Path, parent: Path) -> None:
    """What Maven Central demands of a POM; the parent gives what it lacks."""
    roots = [xml.parse(each).getroot() for each in (path, parent)]
    for key in (
        "name",
        "description",
        "url",
        "licenses/{p}license/{p}url",
        "developers/{p}developer/{p}name",
        "scm/{p}connection",
        "scm/{p}url",
    ):
        # name and description must be a module's own
        asked = roots[:1] if key in ("name", "description") else roots
        if not any(root.findtext(POM + key.format(p=POM)) for root in asked):
            raise ReleaseError(f"{path.parent.name}/pom.xml lacks {key.format(p='')}")


# modules without sources: Maven Central wants jars of sources and Javadoc of them, too
RENAMED = {
    "pgaq-jms-javax": ("pgaq-jms", "jakarta.jms renamed to javax.jms"),
    "pgaq-spring-boot3-starter": ("pgaq-spring-boot-starter", "the packages of Spring Boot 4 renamed to those of 3"),
}
README = "The classes of io.github.pgaq:{}:{}, whose sources and Javadoc apply, with {}.\n"


def make_maven(build: Build) -> None:
    """The bundle that Maven Central's portal takes, without signatures."""
    jms, version = build.unpacked("maven") / "jms", build.release.maven
    for pom in jms.rglob("pom.xml"):
        pom.write_text(pom.read_text().replace(f"<version>{build.release.version}-SNAPSHOT</version>", f"<version>{version}</version>"))
    stamp = f"-Dproject.build.outputTimestamp={build.release.date:%Y-%m-%dT%H:%M:%SZ}"
    command = ("mvn", "-q", "-B", "-Prelease", "-DskipTests", stamp, "-pl", ",".join(ARTIFACTS), "-am", "package")
    # it ends before a second compiler and several threads for garbage would pay
    build.run(*command, cwd=jms, MAVEN_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    files: dict[str, bytes] = {}
    for artifact in ["pgaq-jms-parent", *ARTIFACTS]:
        module = jms if artifact == "pgaq-jms-parent" else jms / artifact
        check_pom(module / "pom.xml", jms / "pom.xml")
        stem = f"io/github/pgaq/{artifact}/{version}/{artifact}-{version}"
        files[f"{stem}.pom"] = (module / "pom.xml").read_bytes()
        if artifact != "pgaq-jms-parent":
            for kind in ("", "-sources", "-javadoc"):
                jar = module / f"target/{artifact}-{version}{kind}.jar"
                if kind and artifact in RENAMED:
                    origin, how = RENAMED[artifact]
                    write_zip(jar, {"README": README.format(origin, version, how).encode()}, build.release.date)
                files[f"{stem}{kind}.jar"] = jar.read_bytes()
    for name, content in list(files.items()):
        files[f"{name}.md5"] = hashlib.md5(content).hexdigest().encode()
        files[f"{name}.sha1"] = hashlib.sha1(content).hexdigest().encode()
    folder = build.folder("maven")
    for name, content in files.items():
        if name.endswith(".jar"):
            (folder / name.rsplit("/", 1)[1]).write_bytes(content)
    write_zip(folder / f"pgaq-maven-{version}.zip", files, build.release.date)


# --- images --------------------------------------------------------------------------


def write_extension_image(build: Build, package: Path, version: str, to: Path) -> None:
    """The library and the extension's files, as CloudNativePG wants them in an image."""
    root = build.work / f"unpacked-{version}"
    run("dpkg-deb", "-x", package, root)
    (to / "lib").mkdir(parents=True)
    shutil.copy(root / f"usr/lib/postgresql/{version}/lib/pgaq.so", to / "lib")
    shutil.copytree(root / f"usr/share/postgresql/{version}/extension", to / "share/extension")


# the newest Debian release for which there are official images, and its C library
IMAGES_ON, IMAGES_LIBC = "trixie", (2, 41)


def make_images(build: Build) -> None:
    """What `docker build` takes: a Dockerfile and its files, for each version that has a package in dist/debian or dist/debian-VERSION."""
    codename = find(r"^VERSION_CODENAME=(.+)", Path("/etc/os-release").read_text())
    packages = {path.name.split("-")[1]: path for path in build.dist.glob(f"debian*/postgresql-*-pgaq_{build.release.package}-*.deb")}
    if not packages:
        raise ReleaseError("there is no package of this version in dist/debian: make debian first")
    tree, folder = build.unpacked("images") / "packaging/images", build.folder("images")

    def write_dockerfile(kind: str, to: Path, version: str) -> None:
        to.mkdir(parents=True, exist_ok=True)
        debian = codename if packages[version].parent.name == "debian" else IMAGES_ON
        (to / "Dockerfile").write_text(filled((tree / kind / "Dockerfile").read_text(), build.release, PG_MAJOR=version, DEBIAN=debian))

    for package in packages.values():
        libc = find(r"libc6 \(>= ([\d.]+)", run("dpkg-deb", "-f", package, "Depends"))
        if tuple(map(int, libc.split("."))) > IMAGES_LIBC:
            raise ReleaseError(f"{package.name} needs libc6 {libc}, which {IMAGES_ON} does not have: there can be no image with it")
    write_dockerfile("postgres", folder / "postgres", max(packages, key=int))
    shutil.copy(tree / "postgres/10-pgaq.sql", folder / "postgres")
    for version, package in packages.items():
        shutil.copy(package, folder / "postgres")
        write_extension_image(build, package, version, folder / "cloudnativepg" / version)
        write_dockerfile("cloudnativepg", folder / "cloudnativepg" / version, version)


# --- the command line ----------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    make: Callable[[Build], None]
    what: str
    by_hand: str


PARTS = {
    "source": Part(make_source, "the source as .tar.gz, and as .zip for PGXN", "upload the .zip to PGXN Manager; attach both files to the release on the host of the repository"),
    "debian": Part(make_debian, "Debian packages of the extension and of the command", "debsign the .changes, or sign the index of the repository that the .deb files go to"),
    "rpm": Part(make_rpm, "the source package for RPM, as of the PostgreSQL yum repository", "build it with mock for each distribution and PostgreSQL version: mock --rebuild --define 'pgmajorversion 18' pgaq_*.src.rpm; sign the results"),
    "python": Part(make_python, "the command as sdist and wheel", "upload both: twine upload dist/python/*"),
    "maven": Part(make_maven, "the jars with sources, Javadoc and POMs", "unzip the bundle, sign each file (gpg -ab), zip it again, and upload it to the portal of Maven Central"),
    "images": Part(make_images, "what the images are built of", "docker build and docker push each folder of dist/images; none was built here"),
}  # fmt: skip
# made only if named: each takes minutes, and needs root or user namespaces
OTHERS = {
    f"debian-{version}": Part(
        partial(make_debian_of, version=version),
        f"the Debian package of the extension for PostgreSQL {version}, of {suites[-1]}",
        "sign and publish it for that suite, as those of debian",
    )
    for version, suites in SUITES.items()
}


def take_folder(dist: Path, release: Release, everything: bool) -> None:
    """Removes what is there of another commit.  A folder with files that this program has not made is refused."""
    mark = dist / "RELEASE"
    if dist.exists() and not mark.is_file() and (not dist.is_dir() or any(dist.iterdir())):
        raise ReleaseError(f"{dist} is neither empty nor a folder of a release; give --dist another one")
    facts = json.dumps({"version": release.version, "commit": release.commit, "snapshot": release.snapshot}) + "\n"
    if everything or mark.exists() and mark.read_text() != facts:
        shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True, exist_ok=True)
    mark.write_text(facts)


def write_sums(dist: Path) -> None:
    """SHA256SUMS of all files."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(dist)}\n"
        for path in sorted(dist.rglob("*")) if path.is_file() and path.name != "SHA256SUMS"
    ]  # fmt: skip
    (dist / "SHA256SUMS").write_text("".join(lines))


# of a package of Debian: they say when and where it was built
NOT_REPRODUCIBLE = (".buildinfo", ".changes")


def compare(made: Path, dist: Path, parts: list[str]) -> list[str]:
    """The files of these parts that differ, or that only one of the folders has."""

    def same(path: Path) -> bool:
        return (made / path).exists() and (dist / path).exists() and (made / path).read_bytes() == (dist / path).read_bytes()

    files = {path.relative_to(folder) for folder in (made, dist) for part in parts for path in (folder / part).rglob("*") if path.is_file()}
    return [str(path) for path in sorted(files) if path.suffix not in NOT_REPRODUCIBLE and not same(path)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/release", description="Make the packages of a release, below dist/.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"only these of {', '.join(PARTS | OTHERS)}; without names, all but those of other suites"
    )
    parser.add_argument("--snapshot", action="store_true", help="of a commit that is not tagged")
    parser.add_argument("--commit", default="HEAD", help="this commit (default: HEAD)")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the packages go")
    parser.add_argument(
        "--compare", type=Path, metavar="DIST", help="make everything again, keep nothing, and name the files that are not the same in DIST"
    )
    given = parser.parse_args()
    parts = PARTS | OTHERS
    unknown = [name for name in given.parts if name not in parts]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; there are {', '.join(parts)}")
    work = Path(tempfile.mkdtemp(prefix="pgaq-release-"))
    try:
        release = release_of(given.commit, given.snapshot)
        dist = work / "dist" if given.compare else given.dist.resolve()
        take_folder(dist, release, everything=not given.parts)
        build = Build(release, work, dist)
        for name in given.parts or PARTS:
            print(f"{name}: {parts[name].what}", flush=True)
            parts[name].make(build)
        write_sums(build.dist)
        if given.compare:
            different = compare(build.dist, given.compare, given.parts or list(PARTS))
            print("\n".join(["not the same:", *different]) if different else "everything is the same, byte by byte")
            return 1 if different else 0
    except (ReleaseError, OSError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(
        f"\n{sum(path.is_file() for path in build.dist.rglob('*'))} files below {build.dist}, of commit {release.commit[:12]}. Sign and upload by hand:"
    )
    print("  - sign: gpg --detach-sign --armor SHA256SUMS")
    for name in given.parts or PARTS:
        print(f"  - {name}: {parts[name].by_hand}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

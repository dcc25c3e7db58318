#!/bin/sh
# Offers etcdkit as etcdctl and etcdutl, without touching those of another
# package: the administrator chooses with update-alternatives --config.
set -e
if command -v update-alternatives >/dev/null 2>&1; then
	for name in etcdctl etcdutl; do
		update-alternatives --install "/usr/bin/$name" "$name" /usr/bin/etcdkit 10 || true # a file of another package stands there
	done
fi

#!/bin/sh
# Takes the alternatives back when the package goes, not when it is upgraded.
set -e
case "$1" in
remove | deconfigure | 0)
	if command -v update-alternatives >/dev/null 2>&1; then
		for name in etcdctl etcdutl; do
			update-alternatives --remove "$name" /usr/bin/etcdkit || true
		done
	fi
	;;
esac

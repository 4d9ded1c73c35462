#!/usr/bin/env bash
# What the commands must do in a bare system: pack, verify and read, with the bytes of parts as output. The bundle's, without
# Python, then the wheel's. Standard input is a tar with the bundle, the wheel and inputs; run by bundle_test.py in a chroot.
set -euo pipefail
sources=$PWD
mkdir /tmp/bundle && cd /tmp/bundle
tar -x

# use FOLDER: packs the inputs into FOLDER by the commands of the path.
use() {
  cp -r inputs "$1" && cd "$1"
  for pack in train test; do pack-images $pack-images --chunk-samples 16 -o $pack --progress none >/dev/null; done
  pack-images types --resize 16 --crop 16 -o types-pack --progress none >/dev/null
  pack-images types --resize 16 --crop 16 --container shard --codec zstd -o shard --progress none >/dev/null
  pack-sparse ratings.csv -o ratings --progress none >/dev/null
  for pack in train test types-pack shard ratings; do pack-verify $pack >/dev/null; done
  pack-merge all train test >/dev/null
  pack-info all >/dev/null
  pack-bench train --epochs 1 >/dev/null
  pack-verify external.h5 >/dev/null
  sha256sum {train,test,types-pack}/part-*.h5 {shard,ratings}/part-*.zst
  cd ..
}

if command -v python3 >/dev/null; then echo "python3 is there" >&2; exit 1; fi
PATH=/tmp/bundle/bundle/bin:$PATH
use by-bundle 2>/tmp/bundle.log || { cat /tmp/bundle.log; exit 1; }
# Without libcurl URLs are an error that names it.
if pack-info http://127.0.0.1:1/pack 2>/tmp/url.log; then exit 1; fi
grep -q 'libcurl, which is not installed (package libcurl4)' /tmp/url.log || { cat /tmp/url.log; exit 1; }
PATH=/usr/local/bin:${PATH#*:}

apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-numpy python3-pip >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
python3 -m pip install --no-index --no-cache-dir --root-user-action ignore --break-system-packages chunkhit-*.whl >/tmp/pip.log 2>&1 || { cat /tmp/pip.log; exit 1; }
test "$(command -v pack-images)" = /usr/local/bin/pack-images
use by-wheel 2>/tmp/wheel.log || { cat /tmp/wheel.log; exit 1; }
python3 "$sources/tests/install/use_wheel.py" by-wheel
python3 "$sources/samples/python/softmax.py" by-wheel/train by-wheel/test
pack-export by-wheel/ratings -o ratings.csv >/dev/null

DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libcurl4 >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
if pack-info http://127.0.0.1:1/pack 2>/tmp/url.log; then exit 1; fi
if grep -q libcurl4 /tmp/url.log; then cat /tmp/url.log; exit 1; fi

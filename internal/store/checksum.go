package store

import (
	"crypto/md5" // what older stores check a part by
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"net/http"

	"github.com/minio/minio-go/v7"
)

// checksum is what the store checks an upload by. The order is that of the
// fallback in auto mode.
type checksum int32

const (
	autoCRC32C checksum = iota // may fall back
	autoMD5
	autoNone
	onlyCRC32C
	onlySHA256
	onlyMD5
	onlyNone
)

func firstChecksum(mode string) (checksum, error) {
	switch mode {
	case "", "auto":
		return autoCRC32C, nil
	case "crc32c":
		return onlyCRC32C, nil
	case "sha256":
		return onlySHA256, nil
	case "md5":
		return onlyMD5, nil
	case "none":
		return onlyNone, nil
	}
	return 0, fmt.Errorf("%w: checksum %q is none of auto, crc32c, sha256, md5, none", ErrConfig, mode)
}

// next returns what to try after the store refused c.
func (c checksum) next() (checksum, bool) {
	if c < autoNone {
		return c + 1, true
	}
	return c, false
}

// algorithm names c as S3 does, "" where S3 has no header for it.
func (c checksum) algorithm() string {
	switch c {
	case autoCRC32C, onlyCRC32C:
		return "CRC32C"
	case onlySHA256:
		return "SHA256"
	default:
		return ""
	}
}

// sums are the checks that travel with one request body.
type sums struct {
	header http.Header // x-amz-checksum-...
	value  string      // the value in header
	md5    string
	sha256 string
}

// sum computes the checks of a body. Over plain HTTP nothing but a signed hash
// protects it from change on the way.
func (c checksum) sum(body []byte, secure bool) sums {
	s := sums{header: http.Header{}}
	var sha [sha256.Size]byte
	if !secure || c == onlySHA256 {
		sha = sha256.Sum256(body)
		s.sha256 = hex.EncodeToString(sha[:])
	}
	switch c {
	case autoCRC32C, onlyCRC32C:
		var crc [4]byte
		binary.BigEndian.PutUint32(crc[:], crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		s.value = base64.StdEncoding.EncodeToString(crc[:])
	case onlySHA256:
		s.value = base64.StdEncoding.EncodeToString(sha[:])
	case autoMD5, onlyMD5:
		m := md5.Sum(body) // see the import
		s.md5 = base64.StdEncoding.EncodeToString(m[:])
	case autoNone, onlyNone:
	}
	if s.value != "" {
		s.header.Set("X-Amz-Checksum-"+c.algorithm(), s.value)
	}
	return s
}

// completed describes an uploaded part for the request that joins the parts.
func (c checksum) completed(number int, etag string, s sums) minio.CompletePart {
	p := minio.CompletePart{PartNumber: number, ETag: etag}
	switch c.algorithm() {
	case "CRC32C":
		p.ChecksumCRC32C = s.value
	case "SHA256":
		p.ChecksumSHA256 = s.value
	}
	return p
}

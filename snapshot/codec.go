package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/klauspost/compress/zstd"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// ErrNoIdentity tells that a backup is encrypted and no identity given fits.
var ErrNoIdentity = errors.New("no identity decrypts it")

const (
	zstdWindow  = 2 << 20 // keeps both sides small; a database gains little from more
	zstdDefault = 3
	zstdMax     = 22
	codecBuffer = 256 << 10
)

// Codec is what happens to a snapshot on its way into the store.
type Codec struct {
	Compression string // "", "zstd" or "zstd:LEVEL"
	Recipients  []age.Recipient
}

// ParseCompression checks a compression and returns its level, 0 for none.
func ParseCompression(s string) (level int, err error) {
	switch name, arg, has := strings.Cut(s, ":"); {
	case s == "", s == "none":
		return 0, nil
	case name == "zstd" && !has:
		return zstdDefault, nil
	case name == "zstd":
		if level, err = strconv.Atoi(arg); err == nil && level >= 1 && level <= zstdMax {
			return level, nil
		}
	}
	return 0, fmt.Errorf("compression %q is none of none, zstd, zstd:1 to zstd:%d", s, zstdMax)
}

// ending returns the ending of data objects.
func (c Codec) ending() string {
	ending := dataSuffix
	if c.compressed() {
		ending += zstdSuffix
	}
	if len(c.Recipients) > 0 {
		ending += ageSuffix
	}
	return ending
}

func (c Codec) compressed() bool { level, _ := ParseCompression(c.Compression); return level > 0 }

func (c Codec) plain() bool { return !c.compressed() && len(c.Recipients) == 0 }

// names returns the recipients as text, as far as they are.
func (c Codec) names() []string {
	var names []string
	for _, r := range c.Recipients {
		if s, ok := r.(fmt.Stringer); ok {
			names = append(names, s.String())
		} else {
			names = append(names, "age")
		}
	}
	return names
}

// encode returns src compressed and encrypted. It ends with io.EOF only if src
// did; the caller closes it, which ends a reading of src that is under way.
func (c Codec) encode(src io.Reader) (io.ReadCloser, error) {
	level, err := ParseCompression(c.Compression)
	if err != nil {
		return nil, err
	}
	if c.plain() {
		return io.NopCloser(src), nil
	}
	pr, pw := io.Pipe()
	e := &encoding{PipeReader: pr, done: make(chan struct{})}
	go func() {
		defer close(e.done)
		pw.CloseWithError(c.write(pw, src, level))
	}()
	return e, nil
}

// encoding is the reading end of an encoder.
type encoding struct {
	*io.PipeReader
	done chan struct{}
}

// Close waits until the encoder no longer reads its source.
func (e *encoding) Close() error {
	err := e.PipeReader.Close()
	<-e.done
	return err
}

// write encodes src into w; nil means that src ended well.
func (c Codec) write(w io.Writer, src io.Reader, level int) error {
	buffered := bufio.NewWriterSize(w, codecBuffer)
	var out io.Writer = buffered
	finish := []func() error{}
	if len(c.Recipients) > 0 {
		encrypted, err := age.Encrypt(out, c.Recipients...)
		if err != nil {
			return fmt.Errorf("encrypt: %w", err)
		}
		out, finish = encrypted, append(finish, encrypted.Close)
	}
	if level > 0 {
		compressed, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)),
			zstd.WithWindowSize(zstdWindow), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return fmt.Errorf("compress: %w", err)
		}
		out, finish = compressed, append(finish, compressed.Close)
	}
	if err := copyAll(out, src); err != nil {
		return err
	}
	for i := len(finish) - 1; i >= 0; i-- {
		if err := finish[i](); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// copyAll is io.Copy without its shortcuts, which would hide where src broke.
func copyAll(w io.Writer, src io.Reader) error {
	buf := make([]byte, codecBuffer)
	for {
		n, err := src.Read(buf)
		if _, werr := w.Write(buf[:n]); werr != nil {
			return werr
		}
		if err == io.EOF { // only the bare EOF is an end
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// decode undoes encode by what the bytes themselves say, and reports whether
// there was anything to undo.
func decode(src io.Reader, identities []age.Identity) (plain io.ReadCloser, encoded bool, err error) {
	buffered := bufio.NewReaderSize(src, codecBuffer)
	var in io.Reader = buffered
	head, _ := buffered.Peek(markSize)
	if armoured := bytes.HasPrefix(head, []byte(armor.Header)); armoured || bytes.HasPrefix(head, []byte(ageMagic)) {
		if len(identities) == 0 {
			return nil, true, hint.With(fmt.Errorf("decrypt: %w: it is encrypted and none was given", ErrNoIdentity), "pass --identity FILE")
		}
		if armoured {
			in = armor.NewReader(buffered)
		}
		decrypted, err := age.Decrypt(in, identities...)
		if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong {
			return nil, true, hint.With(fmt.Errorf("decrypt: %w", ErrNoIdentity), "pass the identity of one of its recipients with --identity FILE")
		}
		if err != nil {
			return nil, true, fmt.Errorf("decrypt: %w", err)
		}
		buffered = bufio.NewReaderSize(decrypted, codecBuffer)
		in, encoded = buffered, true
	}
	if head, _ := buffered.Peek(len(zstdMagic)); string(head) == zstdMagic {
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(decoderWindow))
		if err != nil {
			return nil, true, fmt.Errorf("decompress: %w", err)
		}
		return d.IOReadCloser(), true, nil
	}
	return io.NopCloser(in), encoded, nil
}

// IsEncoded reports whether a file is compressed or encrypted in a way that
// OpenSource undoes, by what it begins with: it may have any name.
func IsEncoded(file io.ReaderAt) bool {
	head := make([]byte, markSize)
	n, _ := file.ReadAt(head, 0)
	head = head[:n]
	for _, mark := range []string{zstdMagic, ageMagic, armor.Header} {
		if bytes.HasPrefix(head, []byte(mark)) {
			return true
		}
	}
	return false
}

const (
	ageMagic      = "age-encryption.org/v1"
	zstdMagic     = "\x28\xb5\x2f\xfd"
	markSize      = len(armor.Header) // the longest
	decoderWindow = 128 << 20         // what a recompressed backup may need, and no more
)

// withContext ends a reader when ctx does.
type withContext struct {
	ctx context.Context // belongs to the one reading
	io.Reader
}

func (r withContext) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

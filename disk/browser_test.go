//go:build full

package disk

import (
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestABrowserShowsThePage looks at the page as a reader does: at its pixels.
func TestABrowserShowsThePage(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED, there is no chromium: apt-get install chromium")
	}
	dir := t.TempDir()
	page, picture := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.png")
	f, err := os.Create(page)
	if err != nil {
		t.Fatal(err)
	}
	if err := sample(t).WriteHTML(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--window-size=1100,1400", "--hide-scrollbars", "--screenshot="+picture, "file://"+page)
	cmd.WaitDelay = time.Minute
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, out)
	}
	p, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	img, err := png.Decode(p)
	if err != nil {
		t.Fatal(err)
	}
	// The colours that page.html gives to bars, to harmful ones, and to percentiles.
	counts := map[color.RGBA]int{{0x3f, 0x7f, 0xbf, 255}: 0, {0xc8, 0x37, 0x2d, 255}: 0, {0x7a, 0x4f, 0xb5, 255}: 0}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			if _, ok := counts[c]; ok {
				counts[c]++
			}
		}
	}
	for c, least := range map[color.RGBA]int{{0x3f, 0x7f, 0xbf, 255}: 2000, {0xc8, 0x37, 0x2d, 255}: 200, {0x7a, 0x4f, 0xb5, 255}: 100} {
		if counts[c] < least {
			t.Errorf("%d pixels of colour %v, want at least %d: the charts are not drawn", counts[c], c, least)
		}
	}
}

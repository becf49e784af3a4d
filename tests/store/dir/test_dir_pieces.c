/* Objects that come in pieces of any length: they are what was given, and each write but the last ends where a page does, of large objects where a large folio can. */
#include "base/mem.h"
#include "store/dir/dir.h"
#include "store/store.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "vv_test.h"

enum { MIB = 1 << 20, MOST = 12 * MIB, PAGE = 4096, FOLIO = 512 << 10 };

static struct vv_fs disk;
static uint64_t unit, written; /* what writes must begin and end at; where the last one ended */

static ssize_t pwritev_in_order(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	ssize_t got = vv_fs_real()->pwritev(fs, fd, iov, n, off);

	CHECK(got >= 0);
	if (unit) {
		CHECK_EQ((uint64_t)off, written);
		CHECK(written % unit == 0);
		written += (uint64_t)got;
	}
	return got;
}

/* len bytes in pieces of up to `most`, several in a call; hint were announced. */
static void put(struct vv_store *s, uint8_t *p, uint64_t len, uint64_t hint, uint64_t most, uint64_t *state)
{
	struct vv_put *put = NULL;
	struct vv_get *g = NULL;
	uint8_t *back = malloc(len + 1);

	CHECK(back);
	unit = hint >= 4 * MIB ? FOLIO : PAGE;
	written = 0;
	CHECK_EQ(vv_store_put_open(s, "object", hint, &put), 0);
	for (uint64_t done = 0; done < len;) {
		struct iovec iov[3];
		int n = 0;

		for (; n < 3; n++) {
			uint64_t k = gen_below(state, most + 1);

			k = k < len - done ? k : len - done;
			iov[n] = (struct iovec){ p + done, (size_t)k };
			done += k;
		}
		CHECK_EQ(vv_store_put_write(put, iov, n), 0);
	}
	CHECK_EQ(vv_store_put_commit(put), 0);
	CHECK_EQ(written, len);
	unit = 0;
	CHECK_EQ(vv_store_get_open(s, "object", &g), 0);
	CHECK_EQ(g->size, len);
	CHECK_EQ(vv_store_get_read(g, 0, back, (size_t)len), 0);
	CHECK(memcmp(back, p, (size_t)len) == 0);
	vv_store_get_close(g);
	CHECK_EQ(vv_store_remove(s, "object"), 0);
	free(back);
}

int main(void)
{
	struct vv_store_options opt = { .create = true };
	uint8_t *p = malloc(MOST);
	struct vv_store *s = NULL;
	uint64_t state = 7;
	char path[PLACE_MAX];

	CHECK(p);
	gen_bytes(&state, p, MOST);
	disk = *lazyfs();
	disk.pwritev = pwritev_in_order;
	vv_dir_set_fs(&disk);
	CHECK_EQ(vv_store_open(place_path(path, "store"), &opt, &s), 0);
	for (int i = 0; i < 20; i++) {
		put(s, p, gen_below(&state, MOST), 8 * MIB, 1 + gen_below(&state, 3 * MIB), &state);
		put(s, p, gen_below(&state, MIB), 0, 1 + gen_below(&state, 100000), &state);
	}
	put(s, p, MOST, MOST, FOLIO, &state);
	put(s, p, FOLIO, 4 * MIB, FOLIO, &state);
	put(s, p, 1, 4 * MIB, 1, &state);
	vv_store_close(s);
	free(p);
	return 0;
}

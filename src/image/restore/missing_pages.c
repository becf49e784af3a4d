#include "image/restore/missing_pages.h"
#include "base/err.h"
#include "base/mem.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

void vv_missing_pages_forget(struct vv_missing_pages *m)
{
	vv_page_spans_fini(&m->left);
	if (m->uffd >= 0)
		close(m->uffd);
	m->uffd = -1;
}

static int put(const struct vv_missing_pages *m, uint64_t to, const uint8_t *from, uint64_t len, uint64_t *done, bool *gone)
{
	struct uffdio_copy c = { .dst = to, .src = (uintptr_t)from, .len = len };

	*done = len;
	*gone = false;
	if (ioctl(m->uffd, UFFDIO_COPY, &c) == 0)
		return 0;
	if (errno == ENOENT && len > page_size()) /* more than one memory area */
		return put(m, to, from, (len / page_size() + 1) / 2 * page_size(), done, gone);
	if (errno == EAGAIN || errno == ESRCH)
		*done = c.copy > 0 ? (uint64_t)c.copy : 0;
	else if (errno == EEXIST || (errno == ENOENT && m->runs)) /* present, or unmapped by now */
		*done = page_size();
	else
		return vv_err_sys(errno, "cannot give process %d its page at 0x%" PRIx64, (int)m->pid, to);
	*gone = errno == ESRCH;
	return 0;
}

static int take(const struct vv_missing_pages *m, uint64_t at, struct vv_block_cache_piece *out)
{
	if (m->cache)
		return vv_block_cache_get(m->cache, m->file, at, false, out);
	*out = (struct vv_block_cache_piece){ .bytes = m->remote_buffer->bytes + at, .len = (size_t)vv_remote_buffer_has(m->remote_buffer, at) };
	return 0;
}

/* Assembles one page from several pieces: a piece may end within a page. */
static int put_page(const struct vv_missing_pages *m, uint64_t to, uint64_t at, uint64_t *done, bool *gone)
{
	uint8_t *page = vv_mem_new(1, page_size());
	uint64_t have = 0;
	int rc = page ? 0 : VV_ENOMEM;

	while (rc == 0 && have < page_size()) {
		struct vv_block_cache_piece p;
		size_t n;

		rc = take(m, at + have, &p);
		if (rc)
			break;
		n = p.len < page_size() - have ? p.len : (size_t)(page_size() - have);
		memcpy(page + have, p.bytes, n);
		have += n;
		vv_block_cache_release(m->cache, &p, 0, false);
	}
	if (rc == 0)
		rc = put(m, to, page, page_size(), done, gone);
	vv_mem_free(page);
	return rc;
}

int vv_missing_pages_deliver(const struct vv_missing_pages *m, uint64_t to, uint64_t at, uint64_t len, uint64_t *done, bool *gone)
{
	struct vv_block_cache_piece p;
	int rc = take(m, at, &p);

	*done = 0;
	if (rc)
		return vv_err_context(rc, "the page at 0x%" PRIx64 " of process %d", to, (int)m->pid);
	if (!p.len) { /* only with a remote buffer */
		vv_remote_buffer_request(m->remote_buffer, at, len);
		return 0;
	}
	len = p.len < len ? p.len / page_size() * page_size() : len;
	if (len)
		rc = put(m, to, p.bytes, len, done, gone);
	vv_block_cache_release(m->cache, &p, (size_t)*done, false);
	return len ? rc : put_page(m, to, at, done, gone);
}

int vv_missing_pages_bring(struct vv_missing_pages *m, uint64_t addr, uint64_t most, uint64_t *done)
{
	const struct vv_page_span *x = vv_page_spans_find(&m->left, addr);
	uint64_t len = x->hi - addr < most ? x->hi - addr : most;
	bool gone = false;
	int rc = vv_missing_pages_deliver(m, addr, x->at + (addr - x->lo), len, done, &gone);

	if (gone)
		vv_missing_pages_forget(m);
	return rc || gone ? rc : vv_page_spans_drop(&m->left, addr, addr + *done);
}

bool vv_missing_pages_find(const struct vv_missing_pages *m, uint64_t *addr)
{
	for (size_t i = 0; i < m->left.n; i++) {
		const struct vv_page_span *x = &m->left.v[i];
		uint64_t end = x->at + (x->hi - x->lo), at = m->remote_buffer ? vv_remote_buffer_find(m->remote_buffer, x->at, end) : x->at;

		*addr = x->lo + (at - x->at);
		if (at < end)
			return true;
	}
	return false;
}

int vv_missing_pages_zero(struct vv_missing_pages *m, uint64_t addr, uint64_t *done)
{
	struct uffdio_zeropage z = { .range = { addr, page_size() } };

	*done = page_size();
	if (ioctl(m->uffd, UFFDIO_ZEROPAGE, &z) == 0)
		return 0;
	if (errno == ESRCH)
		vv_missing_pages_forget(m);
	else if (errno == EAGAIN)
		*done = 0;
	else if (errno == EEXIST || errno == ENOENT) /* present or unmapped: wake the thread */
		ioctl(m->uffd, UFFDIO_WAKE, &z.range);
	else
		return vv_err_sys(errno, "cannot give process %d its page at 0x%" PRIx64, (int)m->pid, addr);
	return 0;
}

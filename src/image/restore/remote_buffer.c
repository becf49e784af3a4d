#include "image/restore/remote_buffer.h"
#include "base/err.h"
#include "base/mem.h"
#include <unistd.h>

enum state { ABSENT, ASKED, THERE };

int vv_remote_buffer_init(struct vv_remote_buffer *h, uint64_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size_t)((len + page - 1) / page);

	*h = (struct vv_remote_buffer){ .len = len, .pages = pages, .page = page };
	h->bytes = len ? vv_mem_map_wide((size_t)len) : NULL;
	h->state = vv_mem_new(pages, sizeof(*h->state));
	return h->state && (h->bytes || !len) ? 0 : VV_ENOMEM;
}

void vv_remote_buffer_fini(struct vv_remote_buffer *h)
{
	vv_mem_unmap(h->bytes, (size_t)h->len);
	vv_mem_free(h->state);
	*h = (struct vv_remote_buffer){ 0 };
}

static unsigned char state_of(const struct vv_remote_buffer *h, size_t page)
{
	return atomic_load_explicit(&h->state[page], memory_order_acquire);
}

static uint64_t before(const struct vv_remote_buffer *h, size_t page, uint64_t end)
{
	uint64_t at = (uint64_t)page * h->page;

	return at < end ? at : end;
}

uint64_t vv_remote_buffer_has(const struct vv_remote_buffer *h, uint64_t at)
{
	size_t first = (size_t)(at / h->page), end = first;

	while (end < h->pages && state_of(h, end) == THERE)
		end++;
	return end > first ? before(h, end, h->len) - at : 0;
}

uint64_t vv_remote_buffer_find(const struct vv_remote_buffer *h, uint64_t at, uint64_t end)
{
	size_t page = (size_t)(at / h->page);

	if (at >= end || state_of(h, page) == THERE)
		return at;
	while (page < h->pages && before(h, page, end) < end && state_of(h, page) != THERE)
		page++;
	return before(h, page, end);
}

void vv_remote_buffer_request(struct vv_remote_buffer *h, uint64_t at, uint64_t len)
{
	for (size_t page = (size_t)(at / h->page); page < h->pages && (uint64_t)page * h->page < at + len; page++) {
		unsigned char was = ABSENT;

		if (atomic_compare_exchange_strong(&h->state[page], &was, ASKED))
			atomic_store(&h->asked, true);
	}
}

bool vv_remote_buffer_take_request(struct vv_remote_buffer *h)
{
	return atomic_exchange(&h->asked, false);
}

static bool is_wanted(const struct vv_remote_buffer *h, size_t page, bool asked)
{
	return state_of(h, page) == (asked ? ASKED : ABSENT);
}

uint64_t vv_remote_buffer_next(const struct vv_remote_buffer *h, uint64_t at, uint64_t most, bool asked, uint64_t *from)
{
	size_t page = (size_t)((at + h->page - 1) / h->page), first;

	while (page < h->pages && !is_wanted(h, page, asked))
		page++;
	first = page;
	while (page < h->pages && is_wanted(h, page, asked) && (uint64_t)(page - first) * h->page < most)
		page++;
	*from = before(h, first, h->len);
	return before(h, page, h->len) - *from;
}

void vv_remote_buffer_put(struct vv_remote_buffer *h, uint64_t at, uint64_t len)
{
	for (size_t page = (size_t)(at / h->page), end = (size_t)((at + len + h->page - 1) / h->page); page < end; page++)
		atomic_store_explicit(&h->state[page], THERE, memory_order_release);
}

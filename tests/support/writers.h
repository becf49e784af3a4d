/* Threads that write memory as fast as they can, but for pauses: bytes, words, whole pages of one value, stretches across page
 * borders. They stand outside of what the thread sanitizer sees: a page fault orders their writes, which it cannot know. */
#ifndef VV_TEST_WRITERS_H
#define VV_TEST_WRITERS_H

#include <stddef.h>
#include <stdint.h>

struct area {
	uint8_t *p;
	size_t len;
};

struct writers;

/* They begin paused. The areas stay the caller's. */
struct writers *writers_new(unsigned threads, uint64_t seed, const struct area *area, size_t n_areas);
void writers_free(struct writers *w);
void writers_go(struct writers *w);
/* Returns when none of them writes. */
void writers_pause(struct writers *w);
/* How many writes there were so far. */
uint64_t writers_count(const struct writers *w);
/* One write, by the caller. */
void writers_write(uint64_t *seed, const struct area *area, size_t n_areas);
/* Plain stores of one value, without the C library. */
void writers_fill(uint8_t *p, uint8_t value, size_t n);

#endif

/* A cursor over the text of a header. The first error stays, and nothing is accepted after it. */
#ifndef VV_READER_SCANNER_H
#define VV_READER_SCANNER_H

#include <stdbool.h>
#include <stdint.h>

struct vv_scanner { /* the rest of the text */
	const char *p, *end;
	bool bad;
};

/* The next character that is not blank; 0: none. It is not consumed. */
char vv_scanner_look(struct vv_scanner *s);
bool vv_scanner_accept(struct vv_scanner *s, char c);
void vv_scanner_expect(struct vv_scanner *s, char c);
/* A decimal number; one above 64 bits is an error. */
uint64_t vv_scanner_number(struct vv_scanner *s);

#endif

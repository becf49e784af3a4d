/* What reading into a space that checks and places by itself must do, whatever the space. */
#ifndef VV_TEST_DEVICE_LOAD_SUITE_H
#define VV_TEST_DEVICE_LOAD_SUITE_H

#include "space/space.h"

struct device_load_suite {
	const struct vv_space *space;
	void *(*get)(size_t len); /* memory of the space, at any address */
	void (*put)(void *p);
	int rounds; /* of tables that nobody has laid down */
	void (*fail_at)(long n); /* the n-th room from now on (1 = the next) cannot be sent; 0: they all can. NULL: nobody can say */
	void (*fail_open)(bool on); /* the memory for rooms cannot be opened; NULL: nobody can say */
	void (*fail_rooms)(unsigned n); /* there is no memory for each n-th room; 0: there is for all. NULL as well */
};

/* Ends the program where something is not as it should be. */
void device_load_suite_run(const struct device_load_suite *s);

#endif

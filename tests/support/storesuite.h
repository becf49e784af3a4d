/* What every store must do, whatever is behind it. */
#ifndef VV_TEST_STORESUITE_H
#define VV_TEST_STORESUITE_H

/* url: a store that is empty and stays in being while the suite runs. */
void storesuite_run(const char *url);

#endif

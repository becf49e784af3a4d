#include "base/test_point.h"

void (*vv_test_point_hook)(const char *name) = NULL;

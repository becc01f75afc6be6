// Everything is in cudaemu.h already.
#pragma once
#include "cudaemu.h"

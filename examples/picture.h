/* Writes a PNG with nothing but the C library: true colour, the pixels in stored (uncompressed) deflate blocks. */
#ifndef PICTURE_H
#define PICTURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t picture_crc(uint32_t crc, const unsigned char *bytes, size_t length)
{
    crc = ~crc;
    for (size_t index = 0; index < length; index++) {
        crc ^= bytes[index];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
    }
    return ~crc;
}

static void picture_word(unsigned char *target, uint32_t word)
{
    for (int byte = 0; byte < 4; byte++)
        target[byte] = (unsigned char)(word >> (24 - 8 * byte));
}

static void picture_chunk(FILE *file, const char *name, unsigned char *body, size_t length)
{
    unsigned char word[4];
    picture_word(word, (uint32_t)length);
    fwrite(word, 1, 4, file);
    fwrite(name, 1, 4, file);
    fwrite(body, 1, length, file);
    picture_word(word, picture_crc(picture_crc(0, (const unsigned char *)name, 4), body, length));
    fwrite(word, 1, 4, file);
}

/* `pixels` holds height rows of width red, green and blue bytes. Returns 0, or -1 when the file cannot be written. */
static int picture_write(const char *path, const unsigned char *pixels, int width, int height)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return -1;
    size_t row = 3 * (size_t)width + 1, raw = row * (size_t)height, blocks = (raw + 65534) / 65535;
    unsigned char header[13] = {0}, *body = malloc(raw + 5 * blocks + 6), *at = body;
    picture_word(header, (uint32_t)width);
    picture_word(header + 4, (uint32_t)height);
    header[8] = 8; /* bits */
    header[9] = 2; /* true colour */
    *at++ = 0x78;
    *at++ = 0x01;
    uint32_t low = 1, high = 0;
    for (size_t done = 0; done < raw;) {
        size_t length = raw - done < 65535 ? raw - done : 65535;
        *at++ = done + length == raw;
        *at++ = (unsigned char)length;
        *at++ = (unsigned char)(length >> 8);
        *at++ = (unsigned char)~length;
        *at++ = (unsigned char)(~length >> 8);
        for (size_t end = done + length; done < end; done++) {
            size_t column = done % row;
            unsigned char byte = column == 0 ? 0 : pixels[done / row * (row - 1) + column - 1];
            *at++ = byte;
            low = (low + byte) % 65521;
            high = (high + low) % 65521;
        }
    }
    picture_word(at, high << 16 | low);
    at += 4;
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, file);
    picture_chunk(file, "IHDR", header, 13);
    picture_chunk(file, "IDAT", body, (size_t)(at - body));
    picture_chunk(file, "IEND", header, 0);
    free(body);
    return fclose(file);
}

/* A colour for a value from 0 to 1: black, violet, red, orange, yellow, white. */
static void picture_heat(double value, unsigned char *pixel)
{
    static const double stops[6][3] = {{4, 4, 20}, {80, 18, 123}, {182, 54, 121}, {251, 136, 97}, {254, 210, 120}, {252, 253, 240}};
    value = value < 0 ? 0 : value > 1 ? 1 : value;
    int stop = value * 5 >= 5 ? 4 : (int)(value * 5);
    double part = value * 5 - stop;
    for (int channel = 0; channel < 3; channel++)
        pixel[channel] = (unsigned char)(stops[stop][channel] + part * (stops[stop + 1][channel] - stops[stop][channel]));
}

#endif

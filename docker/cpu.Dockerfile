# gtx on a CPU. Build in the folder of the repository: docker build -f docker/cpu.Dockerfile -t gtx:cpu .
# Run in the folder of a table: docker run --rm -v "$PWD:/work" gtx:cpu train my.csv --target-columns y --out run/
FROM python:3.11.7-slim-bookworm

# a compiler for the loops of attention; libraries with which RDKit draws
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev libxrender1 libxext6 libx11-6 libexpat1 \
    && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml constraints.txt README.md LICENSE /gtx/
COPY gtx /gtx/gtx
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu torch=="$(sed -n 's/^torch==//p' /gtx/constraints.txt)" \
    && pip install --no-cache-dir --constraint /gtx/constraints.txt /gtx

RUN useradd --create-home gtx
USER gtx
WORKDIR /work
ENTRYPOINT ["gtx"]
CMD ["--help"]

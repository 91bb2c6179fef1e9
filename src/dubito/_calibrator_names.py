"""Names of the calibrators, in a module without imports, so that the command line starts fast."""

#: Name -> class in `dubito.calibration`.
CALIBRATORS = {
    "auto": "AutoCalibrator",
    "platt": "PlattCalibrator",
    "isotonic": "IsotonicCalibrator",
    "beta": "BetaCalibrator",
    "bins": "BinningCalibrator",
    "temperature": "TemperatureCalibrator",
    "vector": "VectorCalibrator",
    "matrix": "MatrixCalibrator",
    "venn-abers": "VennAbersCalibrator",
    "evidential-logistic": "EvidentialLogisticCalibrator",
    "evidential-isotonic": "EvidentialIsotonicCalibrator",
    "evidential-bins": "EvidentialBinningCalibrator",
    "evidential-multinomial": "EvidentialMultinomialCalibrator",
    "evidential-joint": "EvidentialJointCalibrator",
}
